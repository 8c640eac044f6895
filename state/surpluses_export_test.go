package state

// Surpluses is surpluses.
var Surpluses = surpluses
