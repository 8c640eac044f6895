package journal

// Busy is busy for the tests of package journal_test.
var Busy = busy
