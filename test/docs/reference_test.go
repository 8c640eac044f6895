package docs

import (
	"os/exec"
	"testing"

	"stagedoor/test/harness"
)

func TestConfigurationPageIsWhatTheProgramWrites(t *testing.T) {
	page, err := exec.Command(harness.Binary(t), "config", "reference").Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != pages(t)["configuration.md"] {
		t.Error("docs/configuration.md is stale: run make docs")
	}
}
