package picture_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"stagedoor/providers/picture"
)

// noise is a PNG that does not compress, of about 4 bytes a pixel.
func noise(t testing.TB, w, h int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(rand.Uint32())
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func all(t *testing.T, c picture.Content) []byte {
	t.Helper()
	r, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil || int64(len(b)) != c.Len() {
		t.Fatalf("%d bytes, said %d, %v", len(b), c.Len(), err)
	}
	return b
}

func TestFilesAreKnownByTheirContent(t *testing.T) {
	dir := t.TempDir()
	small, large := noise(t, 8, 4), noise(t, 400, 300)
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 5, 7)), nil); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data  []byte
		limit int64
		want  string
		err   error
	}{
		"small":         {small, 1 << 20, "image/png 8x4", nil},
		"large":         {large, 1 << 20, "image/png 400x300", nil},
		"photo":         {photo.Bytes(), 1 << 20, "image/jpeg 5x7", nil},
		"as it may be":  {large, int64(len(large)), "image/png 400x300", nil},
		"over by one":   {large, int64(len(large)) - 1, "", picture.ErrTooLarge},
		"small limit":   {small, 10, "", picture.ErrTooLarge},
		"empty":         {nil, 10, "", picture.ErrFormat},
		"text":          {[]byte("<html>"), 1 << 20, "", picture.ErrFormat},
		"a lot of text": {bytes.Repeat([]byte("<html>"), 1<<17), 1 << 20, "", picture.ErrFormat},
		"cut off":       {small[:20], 1 << 20, "", picture.ErrCorrupt},
	} {
		f, err := picture.ReadFile("x", iotest.HalfReader(bytes.NewReader(tc.data)), tc.limit, dir)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err != nil {
			continue
		}
		if got := f.MediaType + " " + f.Dimensions().String(); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
		for range 2 {
			if b, err := io.ReadAll(f.Reader()); err != nil || !bytes.Equal(b, tc.data) {
				t.Errorf("%s: reads otherwise, %v", name, err)
			}
		}
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAFormArrivesAsItWasMade(t *testing.T) {
	data := noise(t, 300, 300)
	file, err := picture.ReadFile("secret.png", bytes.NewReader(data), 1<<20, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	form := picture.NewForm()
	form.Field("prompt", "a\r\n--cat")
	form.File(`im"age`, file)
	for range 2 {
		body := all(t, form)
		_, params, err := mime.ParseMediaType(form.ContentType())
		if err != nil {
			t.Fatal(err)
		}
		got, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		if v := got.Value["prompt"]; len(v) != 1 || v[0] != "a\r\n--cat" {
			t.Errorf("prompt %q", v)
		}
		f := got.File["im%22age"]
		if len(f) != 1 || f[0].Size != int64(len(data)) || strings.Contains(f[0].Filename, "secret") ||
			f[0].Header.Get("Content-Type") != "image/png" {
			t.Errorf("file %+v", f)
		}
	}
}

func TestADocumentHoldsItsFilesInBase64(t *testing.T) {
	for _, size := range []int{1, 20, 300} {
		data := noise(t, size, size)
		file, err := picture.NewFile("", data)
		if err != nil {
			t.Fatal(err)
		}
		var d picture.Document
		d.JSON([]byte(`{"data":"`))
		d.Base64(file)
		d.JSON([]byte(`"}`))
		var got struct{ Data []byte }
		if err := json.Unmarshal(all(t, &d), &got); err != nil || !bytes.Equal(got.Data, data) {
			t.Errorf("%d pixels wide: %v", size, err)
		}
	}
}

func TestImagesCountIfThereIsSomething(t *testing.T) {
	r := picture.Reply{
		Images: []picture.Image{{Data: []byte{1}}, {Base64: []byte("AQ==")}, {URL: "https://h/x"}, {Unsafe: true}},
	}
	if r.Delivered() != 3 {
		t.Errorf("%d delivered", r.Delivered())
	}
	for _, i := range r.Images[:2] {
		if got := string(i.AppendBase64(nil)); got != base64.StdEncoding.EncodeToString([]byte{1}) {
			t.Errorf("got %q", got)
		}
	}
}

func TestSizes(t *testing.T) {
	for in, ok := range map[string]bool{"1024x1024": true, "1x99999": true, "": false, "x": false, "1024": false, "01x1": false,
		"1x100000": false, "-1x1": false, "1024X1024": false, "1 x1": false, "1x1x1": false} {
		if s, got := picture.ParseSize(in); got != ok || ok && s.String() != in {
			t.Errorf("%q: %v, %v", in, s, got)
		}
	}
}

// Whatever is in a header, it costs no more than reading it.
func FuzzMeasure(f *testing.F) {
	f.Add(noise(f, 3, 2))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8X"))
	f.Add([]byte("\xff\xd8\xff\xe0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		media, size, err := picture.Measure(bytes.NewReader(data))
		if err == nil && (media == "" || size.Width <= 0 || size.Height <= 0) {
			t.Errorf("%q, %v", media, size)
		}
	})
}
