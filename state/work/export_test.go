package work

// Surpluses is surplusOfOwners.
var Surpluses = surplusOfOwners
