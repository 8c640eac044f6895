// Package nemesis holds that nodes on one Postgres lose nothing that they acknowledged and do nothing twice, whatever
// happens to the database and to the network between. Two states make holds, end them, redeem codes, make, check and
// revoke keys, take video jobs over from each other and change them, while faults follow each other: a proxy cuts,
// delays and swallows what one of them sends and gets, connections are ended in the middle of an append, and the
// database is stopped, killed and failed over to its synchronous standby. Porcupine checks that the answers are those
// of some sequence of the calls. Refreshes of OAuth tokens have the same test in actors/tokens.
//
// The suite of cmd/stagedoor does the same with processes, which are killed, frozen and cut off.
//
//	make nemesis ROUNDS=20
package nemesis
