package money

import "stagedoor/state/journal"

// PageOf returns a page of the ledger with these entries.
func PageOf(entries ...Entry) []byte { return pageOf(entries...).Value }

// EditPage returns a page of the ledger after edit has changed its entries.
func EditPage(rec journal.Record, edit func([]Entry)) []byte {
	entries, err := decodePage(rec)
	if err != nil {
		panic(err)
	}
	edit(entries)
	return pageOf(entries...).Value
}
