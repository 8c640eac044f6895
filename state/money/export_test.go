package money

import "stagedoor/state/journal"

// PageOf is a page of the ledger with these entries.
func PageOf(entries ...Entry) []byte { return pageOf(entries...).Value }

// EditPage is a page of the ledger in which one thing was changed.
func EditPage(rec journal.Record, edit func([]Entry)) []byte {
	entries, err := decodePage(rec)
	if err != nil {
		panic(err)
	}
	edit(entries)
	return pageOf(entries...).Value
}
