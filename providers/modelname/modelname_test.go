package modelname_test

import (
	"testing"

	"stagedoor/providers/modelname"
)

// TestEachNameOfAMediaModelIsFoundFromTheOther, and other names stay.
func TestEachNameOfAMediaModelIsFoundFromTheOther(t *testing.T) {
	for public, vendor := range map[string]string{
		"video-2": "sora-2", "video-2-pro": "sora-2-pro", "gen-image-1": "gpt-image-1", "legacy-image-3": "dall-e-3",
	} {
		if got := modelname.Vendor(public); got != vendor {
			t.Errorf("Vendor(%q) is %q, want %q", public, got, vendor)
		}
		if got := modelname.Public(vendor); got != public {
			t.Errorf("Public(%q) is %q, want %q", vendor, got, public)
		}
		if got := modelname.Vendor(vendor); got != vendor {
			t.Errorf("Vendor changes the vendor's own name %q to %q", vendor, got)
		}
	}
	for _, name := range []string{"", "video", "sora", "my-video-2", "gpt-5"} {
		if modelname.Vendor(name) != name || modelname.Public(name) != name {
			t.Errorf("%q is changed to %q and %q", name, modelname.Vendor(name), modelname.Public(name))
		}
	}
}
