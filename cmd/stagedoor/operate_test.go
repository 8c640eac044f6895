package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOperatorsDay goes through what an operator does, on a data directory that no
// gateway runs on.
func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	data := filepath.Join(directory(t), "data")
	key := createKey(t, data, "--name", "first").ID
	steps := []struct {
		line   string
		code   int
		out    string
		errOut string
	}{
		{"users create anna", exitOK, "", "This is the password of anna (1)"},
		{"credits add anna 12.5 --id one", exitOK, "anna has $12.50 to spend\n", ""},
		{"credits add anna 12.5 --id one", exitOK, "had been made before", ""},
		{"credits add anna 13 --id one", exitFailure, "", "was used for a payment of another amount"},
		{"credits take anna 0.000001", exitOK, "$12.499999", ""},
		{"credits take anna 100", exitFailure, "", "more than the account has available"},
		{"credits add anna 0", exitUsage, "", "above 0"},
		{"credits add anna 1e3", exitUsage, "", `"1e3" is no amount`},
		{"credits add missing 1", exitFailure, "", "no such user"},
		{"credits add anna", exitUsage, "", "takes a user's name and an amount of dollars"},
		{"credits show ANNA --json", exitOK, `"available": 12499999`, ""},
		{"credits list", exitOK, "12.499999", ""},
		{"keys update " + key + " --budget 20.5 --budget-window month --name second", exitOK,
			"budget       20.50 (month)", ""},
		{"keys update " + key + " --budget -1", exitUsage, "", "between 0 and"},
		{"keys update " + key + " --budget 1 --budget-window week", exitUsage, "", `"week" is not known`},
		{"keys update " + key + " --no-scopes --scope chat", exitUsage, "", "exclude each other"},
		{"keys update " + key + " --no-scopes --model a --model b --rpm 5", exitOK,
			"scopes       none\nmodels       a,b\nlimits       5 rpm", ""},
		{"keys update " + key + " --scope all --model * --allow-ip 10.0.0.0/8 --disabled", exitOK,
			"scopes       all\nmodels       all", ""},
		{"keys show " + key, exitOK, "state        disabled by the operator", ""},
		{"keys update " + key + " --disabled=false --allow-ip any", exitOK, "allowed from anywhere", ""},
		{"keys update " + key + " --on-disconnect detach", exitOK, "disconnected detach", ""},
		{"keys update " + key + " --on-disconnect model", exitOK, "disconnected as the model says", ""},
		{"keys update " + key + " --on-disconnect stay", exitFailure, "", "on_disconnect"},
		{"keys update " + key + " --on-disconnect=", exitFailure, "", "on_disconnect"},
		{"keys create --name third --on-disconnect stay", exitUsage, "", "--on-disconnect must be cancel"},
		{"keys create --name third --on-disconnect=", exitUsage, "", "--on-disconnect must be cancel"},
		{"keys show " + key + " --json", exitOK, `"amount": 20500000`, ""},
		{"keys update " + key + " --tpm 900", exitOK, "limits       5 rpm, 900 tpm, 0 at a time", ""},
		{"keys update " + key + " --concurrency 3", exitOK, "limits       5 rpm, 900 tpm, 3 at a time", ""},
		{"keys update " + key + " --rpm 0", exitOK, "limits       0 rpm, 900 tpm, 3 at a time", ""},
		{"keys update " + key + " --budget 7", exitOK, "budget       7.00 (month)", ""},
		{"keys update " + key + " --budget-window day", exitOK, "budget       7.00 (day)", ""},
		{"keys update " + key + " --budget 0", exitOK, "budget       none", ""},
		{"keys update " + key + " --budget-window day", exitFailure, "", "must have an amount"},
		{"keys show key_none", exitFailure, "", "there is no such key"},
		{"keys show SECOND", exitOK, key, ""},
		{"keys show " + key[:len(key)-1], exitOK, key, ""},
		{"keys show secnd", exitFailure, "", "there is no such key (did you mean second?)"},
		{"keys update second --expires-in 30d", exitOK, key, ""},
		{"usage --key second --per key", exitOK, "in all", ""},
		{"usage --key third", exitFailure, "", "there is no such key"},
		{"usage --key cfg_third --per key", exitOK, "in all", ""},
		{"receipts list --key chat_5", exitOK, "REQUEST", ""},
		{"receipts list --key second", exitOK, "REQUEST", ""},
		{"users show ana", exitFailure, "", "there is no such user (did you mean anna?)"},
		{"users show anna", exitOK, "available    12.499999", ""},
		{"users update anna --scope chat --model gpt-* --budget 20 --budget-window month --create-keys=false", exitOK,
			"changed user anna (1)", ""},
		{"users update anna --budget 30", exitOK, "changed user anna (1)", ""},
		{"users show anna", exitOK, "group        none\nscopes       chat\nmodels       gpt-*\ncreate keys  false\nbudget       30.00 (month)", ""},
		{"users update anna --scope all --model * --budget 0 --create-keys", exitOK, "changed user anna (1)", ""},
		{"users show anna", exitOK, "scopes       all\nmodels       all\ncreate keys  true\nbudget       none", ""},
		{"users update anna --budget-window year", exitUsage, "", `"year" is not known`},
		{"groups create staff --scope chat --budget 500 --budget-window month", exitOK,
			"members      0\nscopes       chat\nmodels       all\ncreate keys  true\nbudget       500.00 (month)", ""},
		{"groups create STAFF", exitFailure, "", "is taken"},
		{"groups update staff --budget 7", exitOK,
			"scopes       chat\nmodels       all\ncreate keys  true\nbudget       7.00 (month)", ""},
		{"groups update staff --create-keys=false --name crew", exitOK, "name         crew", ""},
		{"groups update crew", exitUsage, "", "say what to change"},
		{"groups add crew ANNA", exitOK, "members      1", ""},
		{"groups add crew missing", exitFailure, "", "must be the name of a user"},
		{"groups show crew", exitOK, "users        anna", ""},
		{"groups show crw", exitFailure, "", "there is no such group (did you mean crew?)"},
		{"groups show 1", exitOK, "users        anna", ""},
		{"users show anna", exitOK, "group        crew", ""},
		{"groups list", exitOK, "7.00 (month)", ""},
		{"groups delete crew", exitFailure, "", "has members"},
		{"groups remove crew anna", exitOK, "members      0", ""},
		{"groups delete crew", exitOK, "deleted the group crew", ""},
		{"groups show crew", exitFailure, "", "there is no such group"},
		{"groups add crew", exitUsage, "", "takes the names of a group and a user"},
		{"users sign-out missing", exitFailure, "", "there is no such user"},
		{"users sign-out anna --json", exitOK, `"username": "anna"`, ""},
		{"codes mint 5 --count 2 --expires-in 30d", exitOK, "2 codes of $5.00", ""},
		{"codes mint 0", exitFailure, "", "above 0"},
		{"codes list --state open", exitOK, "5.00  open", ""},
		{"codes list --state old", exitFailure, "", "must be one of"},
		{"codes cancel code_none", exitFailure, "", "there is no such redeem code"},
		{"apps create Weather --owner anna --redirect-uri https://w.example/cb", exitOK, "client_secret", ""},
		{"apps list", exitOK, "Weather", ""},
		{"apps rotate-secret weather", exitOK, "the one before works until", ""},
		{"apps update weather --redirect-uri https://a.example/ --redirect-uri https://b.example/", exitOK,
			"b.example", ""},
		{"apps update weather --logo /none.png", exitFailure, "", "no such file"},
		{"apps rotate-secret weather --overlap 0", exitOK, "the one before has ended", ""},
		{"apps end-secret weather", exitOK, "has one secret", ""},
		{"apps delete 1", exitOK, "disabled app 1", ""},
		{"apps erase 1", exitUsage, "", "cannot be undone"},
		{"apps erase 1 --yes", exitOK, "erased app 1", ""},
		{"apps delete 9", exitFailure, "", "there is no such app"},
		{"usage", exitOK, "in all", ""},
		{"usage --per key,user", exitOK, "USER    KEY", ""},
		{"usage --per week", exitFailure, "", "must be some of day"},
		{"receipts list", exitOK, "REQUEST", ""},
		{"receipts show none", exitFailure, "", "there is no receipt"},
		{"admin token", exitOK, "", "This is the token of the admin API"},
		{"admin token --remove", exitOK, "is gone", ""},
	}
	for _, s := range steps {
		t.Run(s.line, func(t *testing.T) {
			command(t, nil, append(strings.Fields(s.line), "--data", data)...).check(t, s.code, s.out, s.errOut)
		})
	}
}
