package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"testing"
)

func TestDoctorTellsWhatIsWrong(t *testing.T) {
	dir := directory(t)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := dead.Addr().String()
	_ = dead.Close()
	text := `{"data": "` + filepath.Join(dir, "data") + `", "listen": "127.0.0.1:0",
		"providers": {"p": {"shape": "chat", "base_url": "http://` + refusing + `/v1", "api_keys": ["sesame"]}},
		"models": {"*": {"targets": [{"provider": "p", "model": "*"}]}}}`
	file := write(t, filepath.Join(dir, "stagedoor.yaml"), text)
	command(t, nil, "doctor", "-c", file).check(t, exitFailure, "not reached", "cannot run")
	command(t, nil, "doctor", "-c", file, "--offline").check(t, exitOK, "skipped", "")
	command(t, nil, "doctor", "-c", write(t, filepath.Join(dir, "wrong.yaml"), "lisen: x\n")).check(t, exitConfig, "",
		"lisen")
	var report struct {
		Status string
		Checks []struct{ Name, Status, Detail string }
	}
	r := command(t, nil, "doctor", "-c", file, "--json")
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || report.Status != "failed" || len(report.Checks) < 6 {
		t.Errorf("%v: %s", err, r.out)
	}
	p := launch(t, dir, "serve", "-c", file)
	command(t, nil, "doctor", "-c", file, "--offline").check(t, exitOK, "in use by the gateway that runs", "")
	p.stop()
}
