package pglog

// PruneLock is the advisory lock of the node that removes records.
const PruneLock = pruneLock

// Searching returns options of a log that reads so many of the newest records before it uses the index, and uses that
// in parts of the time if it finds a number of records or more. Its times are not those of the database.
func (o Options) Searching(recent, few, part int) Options {
	o.recent, o.few, o.part = recent, few, part
	o.otherClock = true
	return o
}
