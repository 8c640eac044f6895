package pages

import (
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"stagedoor/docs"
)

// ClientSetting says how one program is connected to the gateway.
type ClientSetting struct {
	Name   string
	Blocks []ClientBlock
}

// ClientBlock is a file to write or a command to run.
type ClientBlock struct {
	File string // "": it is a command
	Text string
}

// The documents of clients name this address, key and model. ClientSettings replaces them.
const (
	docsAddress = "http://127.0.0.1:8080"
	docsKey     = "sd-example-key-of-the-documents"
	docsModel   = "sandbox"
)

// documented returns the settings of docs/clients. That folder is the only place where settings are written, so that
// the pages show exactly the lines that test/agents runs.
var documented = sync.OnceValue(func() []ClientSetting { return readClients(docs.Files) })

// docsWord finds the model of the examples as a whole word. plain and plainAddress match what may be put into the lines
// of shells and files without quoting.
var (
	docsWord = regexp.MustCompile(`\b` + docsModel + `\b`)
	plain    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)

	plainAddress = regexp.MustCompile(`^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)
)

// ClientSettings returns the settings of every documented client with a real address, key and model. The values come
// into shell commands and configuration files, so one with other characters than names have leaves the example of the
// documents in its place. An empty key stands for a key that the reader has to fill in.
func ClientSettings(address, key, model string) []ClientSetting {
	if !plainAddress.MatchString(address) {
		address = docsAddress
	}
	if !plain.MatchString(key) {
		key = "YOUR_KEY"
	}
	if !plain.MatchString(model) {
		model = docsModel
	}
	// A model is named in documents with other words around it, so it is replaced before the key and the address are.
	values := strings.NewReplacer(docsAddress, address, docsKey, key)
	all := []ClientSetting{{Name: nameCurl, Blocks: []ClientBlock{{Text: curlExample(address, key, model)}}}}
	for _, c := range documented() {
		filled := ClientSetting{Name: c.Name}
		for _, b := range c.Blocks {
			b.Text = values.Replace(docsWord.ReplaceAllLiteralString(b.Text, model))
			filled.Blocks = append(filled.Blocks, b)
		}
		all = append(all, filled)
	}
	return all
}

// nameCurl is the title of the page that has examples for every shape. Pages show one of them only.
const nameCurl = "curl"

// curlExample returns a curl command with a request in the shape that most clients speak.
func curlExample(address, key, model string) string {
	return "curl -N " + address + "/v1/chat/completions \\\n  -H 'Authorization: Bearer " + key + "' \\\n" +
		"  -H 'Content-Type: application/json' \\\n  -d '{\"model\": \"" + model +
		"\", \"stream\": true, \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'"
}

// listedPage is a line of the table in docs/clients/README.md, which says in which sequence clients are shown.
var listedPage = regexp.MustCompile(`(?m)^\| \[[^\]]+\]\(([a-z-]+\.md)\)`)

// readClients reads the pages of docs/clients that have settings.
func readClients(files fs.FS) []ClientSetting {
	list, err := fs.ReadFile(files, "clients/README.md")
	if err != nil {
		panic(err) // it is in the program
	}
	var all []ClientSetting
	for _, m := range listedPage.FindAllSubmatch(list, -1) {
		text, err := fs.ReadFile(files, "clients/"+string(m[1]))
		if err != nil {
			panic(err) // it is in the program
		}
		if c := readClient(string(text)); len(c.Blocks) > 0 && c.Name != nameCurl {
			all = append(all, c)
		}
	}
	return all
}

// block matches a block of code in a page of docs/clients: its language, the name of the file that it is, and its text.
var block = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```$")

// readClient returns the blocks of the section Settings, up to the first output of a command. If a page says which
// blocks are files to write and commands to run, other blocks are alternatives and left out.
func readClient(page string) ClientSetting {
	title, _, _ := strings.Cut(strings.TrimPrefix(page, "# "), "\n")
	_, settings, _ := strings.Cut(page, "\n## Settings\n")
	settings, _, _ = strings.Cut(settings, "\n## ")
	var marked, others []ClientBlock
	for _, m := range block.FindAllStringSubmatch(settings, -1) {
		language, word := m[1], m[2]
		if language == "text" && word != "" {
			break // what the commands before it print
		}
		b := ClientBlock{Text: strings.TrimSuffix(m[3], "\n")}
		file, isFile := strings.CutPrefix(word, "file=")
		switch {
		case isFile:
			b.File = file
			marked = append(marked, b)
		case word != "":
			marked = append(marked, b)
		default:
			others = append(others, b)
		}
	}
	if len(marked) == 0 {
		marked = others
	}
	return ClientSetting{Name: title, Blocks: marked}
}
