package work

// Surpluses is surpluses.
var Surpluses = surpluses
