package webhook

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// The vector is the one that the scheme's specification publishes.
func TestSignatureIsThatOfTheSpecification(t *testing.T) {
	key, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSecretsAreReadStrictly(t *testing.T) {
	encoded := func(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", n))) }
	for secret, ok := range map[string]bool{
		"whsec_" + encoded(24): true, "whsec_" + encoded(64): true,
		"": false, "whsec_": false, encoded(32): false, "whsec_" + encoded(23): false, "whsec_" + encoded(65): false,
		"whsec_not base64 at all, but long enough": false, "WHSEC_" + encoded(32): false,
	} {
		if _, err := ParseSecret(secret); (err == nil) != ok {
			t.Errorf("%q: %v", secret, err)
		} else if err != nil && len(secret) > 6 && strings.Contains(err.Error(), secret[6:]) {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}
