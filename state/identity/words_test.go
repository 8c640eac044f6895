package identity_test

import (
	"encoding/json"
	"testing"

	"stagedoor/state/identity"
)

func TestWordsOfAKeyAreStoredAsWords(t *testing.T) {
	k := identity.Key{OnDisconnect: identity.DisconnectDetach, DisabledBy: identity.PartyLead}
	stored, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	var words map[string]any
	if err := json.Unmarshal(stored, &words); err != nil {
		t.Fatal(err)
	}
	if words["on_disconnect"] != "detach" || words["disabled_by"] != "lead" {
		t.Errorf("stored as %s", stored)
	}
	var again identity.Key
	if err := json.Unmarshal(stored, &again); err != nil || again.OnDisconnect != k.OnDisconnect ||
		again.DisabledBy != k.DisabledBy {
		t.Errorf("read as %+v, %v", again, err)
	}
	for _, text := range []string{`{"on_disconnect":"wait"}`, `{"disabled_by":"Lead"}`} {
		if err := json.Unmarshal([]byte(text), &again); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
