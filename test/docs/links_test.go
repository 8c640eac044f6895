package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// dropped are the characters of a heading that forges leave out of its anchor.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchorsOf are the anchors that forges give to a page's headings.
func anchorsOf(text string) map[string]bool {
	anchors := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		anchors[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return anchors
}

// linksOf are the links of a page to files and headings of the repository.
func linksOf(text string) []string {
	var links []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") {
			links = append(links, m[1])
		}
	}
	return links
}

func TestLinksLeadSomewhere(t *testing.T) {
	root := filepath.Dir(folder(t))
	texts := map[string]string{}
	for name, text := range pages(t) {
		texts["docs/"+name] = text
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts["README.md"] = string(readme)
	for name, text := range texts {
		for _, to := range linksOf(text) {
			file, fragment, _ := strings.Cut(to, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s leads nowhere: %v", name, to, err)
			}
			if fragment != "" && !anchorsOf(texts[target])[fragment] {
				t.Errorf("%s: %s leads to no heading of %s", name, to, target)
			}
		}
	}
}

func TestEveryPageCanBeReachedFromTheIndex(t *testing.T) {
	all := pages(t)
	reached := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		for _, to := range linksOf(all[queue[0]]) {
			file, _, _ := strings.Cut(to, "#")
			page := path.Join(path.Dir(queue[0]), file)
			if _, known := all[page]; known && !reached[page] {
				reached[page] = true
				queue = append(queue, page)
			}
		}
	}
	for name := range all {
		if !reached[name] {
			t.Errorf("no link leads from docs/README.md to docs/%s", name)
		}
	}
}
