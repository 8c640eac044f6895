package live

import "stagedoor/test/harness"

// Config has the embedded sandbox make videos that cost nothing. data is where
// the state is kept; "": in memory.
func Config(data string) harness.Config {
	c := harness.CatchAll(harness.Provider{Shape: "sandbox"})
	c.Data = data
	return c
}
