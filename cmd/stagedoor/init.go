package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/state/journal/fsync"
	"stagedoor/state/ownership"
)

// vendor is a provider that init writes into a file.
type vendor struct {
	name     string
	provider string   // the beginning of its entry in YAML, to which the keys and the closing bracket are added
	variable string   // where its users keep their key
	models   []string // patterns of its models
}

// vendors has the providers that init offers, in that order.
var vendors = []vendor{
	{"openai", `{shape: responses, also: [chat, completions, images, videos], base_url: "https://api.openai.com/v1"`,
		"OPENAI_API_KEY", []string{"gpt-*", "chatgpt-*", "o1*", "o3*", "o4*", "sora-*", "dall-e-*"}},
	{"anthropic", `{shape: messages, base_url: "https://api.anthropic.com"`, "ANTHROPIC_API_KEY", []string{"claude-*"}},
	{"google", `{shape: gemini, base_url: "https://generativelanguage.googleapis.com"`, "GEMINI_API_KEY",
		[]string{"gemini-*"}},
	{"sandbox", `{shape: sandbox`, "", []string{"sandbox"}},
}

// vendorNames returns the vendors that init knows, in the order in which it offers them.
func vendorNames() []string {
	var names []string
	for _, v := range vendors {
		names = append(names, v.name)
	}
	return names
}

// answers holds the three answers. A flag that is given answers its question.
type answers struct {
	vendors []string
	keys    []string // VENDOR=KEY
	file    string
}

// initCommand returns "stagedoor init", which writes a first configuration file.
func (a *app) initCommand() *cobra.Command {
	var given answers
	c := &cobra.Command{
		Use: "init", Short: "Write a configuration file, after three questions", Args: cli.NoArgs,
		Long: `Write a configuration file, after three questions: which vendors, which keys, and the
name of the file. Flags answer the questions in advance. The file is checked before it is
written, only its owner can read it, and it never replaces another file.

A key may be the key itself, ${NAME} for a variable of the environment, or file:PATH.`,
		Example: `  stagedoor init
  stagedoor init --vendor openai,anthropic --to stagedoor.yaml \
    --key 'openai=${OPENAI_API_KEY}' --key anthropic=file:/run/secrets/anthropic`,
		RunE: func(c *cobra.Command, _ []string) error { return a.initialise(&given, c.InOrStdin()) },
	}
	f := c.Flags()
	f.StringSliceVar(&given.vendors, "vendor", nil, "one or more of "+strings.Join(vendorNames(), ", "))
	f.StringArrayVar(&given.keys, "key", nil, "`VENDOR=KEY`; may be repeated")
	f.StringVar(&given.file, "to", "", "`file` to write, which must not exist")
	cli.CompleteWords(c, "vendor", vendorNames()...)
	cli.CompleteFiles(c, "to", "yaml", "yml")
	return c
}

// initialise asks what the flags did not answer and writes the file. Everything is asked and checked before
// the file is made, so that an answer that cannot be used leaves nothing behind. The gateway is not started,
// and no request is sent to a vendor.
func (a *app) initialise(given *answers, in io.Reader) error {
	ask := questions{in: in, lines: bufio.NewReader(in), out: a.ErrOut}
	chosen, err := given.chosenVendors(&ask)
	if err != nil {
		return err
	}
	keys, err := given.chosenKeys(chosen, &ask, a.Env)
	if err != nil {
		return err
	}
	if given.file == "" {
		if given.file, err = ask.line("Where shall the file be written?", "stagedoor.yaml", "--to"); err != nil {
			return err
		}
	}
	data, err := datadir.Default(a.Env)
	if err != nil {
		data = "./data"
	}
	text := configuration(chosen, keys, data)
	// A vendor's key may be one that the configuration refuses. A file that the gateway cannot read is not written.
	if _, err := config.Parse(given.file, []byte(text), a.Env); err != nil {
		return err
	}
	if err := writeNew(given.file, text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		a.Out,
		"wrote %s\n\n  stagedoor doctor --config %[1]s    asks each vendor whether its key is accepted\n"+
			"  stagedoor serve --config %[1]s     starts the gateway\n",
		given.file,
	)
	return err
}

// chosenVendors returns the vendors of the flag or the answer, each once.
func (g *answers) chosenVendors(ask *questions) (chosen []vendor, err error) {
	names := g.vendors
	if len(names) == 0 {
		answer, err := ask.line("Which vendors? "+strings.Join(vendorNames(), ", "), "sandbox", "--vendor")
		if err != nil {
			return nil, err
		}
		names = strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	}
	for _, name := range names {
		at := slices.Index(vendorNames(), strings.ToLower(strings.TrimSpace(name)))
		if at < 0 {
			return nil, fmt.Errorf("%w: vendor %q is not known, use some of %s%s", cli.ErrUsage, name,
				strings.Join(vendorNames(), ", "), cli.DidYouMean(name, vendorNames()))
		}
		if !slices.ContainsFunc(chosen, func(v vendor) bool { return v.name == vendors[at].name }) {
			chosen = append(chosen, vendors[at])
		}
	}
	return chosen, nil
}

// chosenKeys returns the keys of the vendors by name. The usual answer is a reference to the vendor's variable, if it
// is set, so that the key itself does not get into the file.
func (g *answers) chosenKeys(chosen []vendor, ask *questions,
	env func(string) (string, bool)) (keys map[string]string, err error) {
	keys = map[string]string{}
	for _, pair := range g.keys {
		name, key, ok := strings.Cut(pair, "=")
		if !ok || !slices.ContainsFunc(chosen, func(v vendor) bool { return v.name == name && v.variable != "" }) {
			return nil, fmt.Errorf("%w: --key needs VENDOR=KEY, with one of the vendors", cli.ErrUsage)
		}
		keys[name] = key
	}
	for _, v := range chosen {
		if v.variable == "" || keys[v.name] != "" {
			continue
		}
		usual := ""
		if value, _ := env(v.variable); value != "" {
			usual = "${" + v.variable + "}"
		}
		if keys[v.name], err = ask.secret("Which key of "+v.name+"?", usual, "--key "+v.name+"=KEY"); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// configuration returns the text of a file. JSON strings are valid in YAML, so that no key can end its quotes.
func configuration(chosen []vendor, keys map[string]string, data string) string {
	quoted := func(s string) string {
		text, err := json.Marshal(s)
		if err != nil {
			panic(err) // a string has a JSON form
		}
		return string(text)
	}
	var providers, models strings.Builder
	for _, v := range chosen {
		key := ""
		if v.variable != "" {
			key = ", api_keys: [" + quoted(keys[v.name]) + "]"
		}
		fmt.Fprintf(&providers, "  %s: %s%s}\n", v.name, v.provider, key)
		for _, pattern := range v.models {
			fmt.Fprintf(&models, "  %q: {targets: [{provider: %s, model: \"*\"}]}\n", pattern, v.name)
		}
	}
	return fmt.Sprintf(`# Written by stagedoor init. stagedoor config example shows every setting.
listen: 127.0.0.1:8080
data: %s
providers:
%s# Names of models or patterns; "*" as a target keeps the name that was asked for.
models:
%s`, quoted(data), providers.String(), models.String())
}

// writeNew makes a file that only its owner can read. It fails if there is one already.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: remove it, or name another file with --to", path)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, ownership.File(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return fsync.Dir(filepath.Dir(path))
}

// questions asks on one stream and reads the answers from another, which need not be a terminal.
type questions struct {
	in    io.Reader
	lines *bufio.Reader
	out   io.Writer
}

// line asks for one line. An empty answer means usual. flag answers the question without asking, which the error says
// if the input has ended.
func (q *questions) line(question, usual, flag string) (string, error) {
	if _, err := fmt.Fprintf(q.out, "%s%s ", question, shownUsual(usual)); err != nil {
		return "", err
	}
	text, err := q.lines.ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || text == "") {
		return "", fmt.Errorf("%w: there is no answer: give %s", cli.ErrUsage, flag)
	}
	return answerOr(text, usual, flag)
}

// secret asks for one line, as line does, and does not show on a terminal what is typed.
func (q *questions) secret(question, usual, flag string) (string, error) {
	file, ok := q.in.(*os.File)
	if !ok || !term.IsTerminal(file.Fd()) {
		return q.line(question, usual, flag)
	}
	if _, err := fmt.Fprintf(q.out, "%s%s ", question, shownUsual(usual)); err != nil {
		return "", err
	}
	text, err := term.ReadPassword(file.Fd())
	fmt.Fprintln(q.out)
	if err != nil {
		return "", err
	}
	return answerOr(string(text), usual, flag)
}

// shownUsual returns the answer that an empty line stands for, as it is shown behind a question.
func shownUsual(usual string) string {
	if usual == "" {
		return ""
	}
	return " [" + usual + "]"
}

// answerOr returns an answer without the space around it, or usual if it is empty.
func answerOr(text, usual, flag string) (string, error) {
	if text = strings.TrimSpace(text); text == "" {
		text = usual
	}
	if text == "" {
		return "", fmt.Errorf("%w: there is no answer: give %s", cli.ErrUsage, flag)
	}
	return text, nil
}
