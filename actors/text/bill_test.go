package text_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// billCase lists the events of an upstream, with a millisecond between them, and the
// shape of the client that asks for two choices.
type billCase struct {
	upstream, client dialogue.Shape
	events           []any
	most             int64 // output tokens that the model gives to a choice
}

// A letter that occurs in no name and no id of any shape, so that it counts delivered text.
const letter = "X"

func drawBillCase(t *rapid.T) billCase {
	c := billCase{upstream: dialoguetest.Chat, most: rapid.Int64Range(1, 60).Draw(t, "model maximum")}
	c.client = rapid.SampledFrom([]dialogue.Shape{dialoguetest.Chat, dialoguetest.Gemini,
		dialoguetest.Completions}).Draw(t, "client")
	text, end := `"delta":{"content":%q},"finish_reason":null`, `"delta":{},"finish_reason":"stop"`
	if c.client == dialoguetest.Completions {
		c.upstream, text, end = dialoguetest.Completions, `"text":%q,"finish_reason":null`,
			`"text":"","finish_reason":"stop"`
	}
	chunk := func(index int, choice string) string {
		return fmt.Sprintf(`data: {"id":"c1","created":1,"model":"m","choices":[{"index":%d,%s}]}`+"\n\n", index,
			choice)
	}
	index := rapid.IntRange(0, 1)
	event := rapid.Custom(func(t *rapid.T) any {
		switch rapid.SampledFrom([]string{"text", "text", "finish", "usage", "done"}).Draw(t, "event") {
		case "text":
			piece := strings.Repeat(letter, rapid.IntRange(1, 40).Draw(t, "length"))
			return strings.Repeat(chunk(index.Draw(t, "choice"), fmt.Sprintf(text, piece)),
				rapid.IntRange(1, 3).Draw(t, "times"))
		case "finish":
			return chunk(index.Draw(t, "choice"), end)
		case "usage":
			return fmt.Sprintf(`data: {"id":"c1","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\n",
				rapid.SampledFrom([]int64{-7, 0, 3, 100, 1 << 40}).Draw(t, "input"),
				rapid.SampledFrom([]int64{-50, 0, 1, 7, 20, 200, 1 << 40}).Draw(t, "output"))
		}
		return chatDone
	})
	c.events = rapid.SliceOfN(event, 0, 7).Draw(t, "events")
	if rapid.Bool().Draw(t, "in order") { // most random streams never come to an end
		c.events = append(c.events, chunk(0, end), chunk(1, end), event.Draw(t, "late"))
	}
	c.events = append(c.events, rapid.SampledFrom([]any{chatDone, reset, stall}).Draw(t, "end"))
	return c
}

// request is the client's body, with a member that limits the answer.
func (c *billCase) request(limit int) string {
	messages := `"messages":[{"role":"user","content":"hi"}]`
	name := "max_tokens"
	switch c.client {
	case dialoguetest.Gemini:
		if limit > 0 {
			return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"candidateCount":2,"maxOutputTokens":%d}}`, limit)
		}
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"candidateCount":2}}`
	case dialoguetest.Completions:
		messages = `"prompt":"hi"`
	}
	if limit > 0 {
		return fmt.Sprintf(`{"model":"m","stream":true,"n":2,%q:%d,%s}`, name, limit, messages)
	}
	return `{"model":"m","stream":true,"n":2,` + messages + `}`
}

// bill plays the case to a client that leaves after so many events and returns what it is
// charged, or why that breaks a rule.
func (c *billCase) bill(s *stage, a account, leaveAfter, limit int) (int64, error) {
	o := s.request(c.client, c.request(limit))
	o.ID = fmt.Sprintf("r%d-%d", leaveAfter, limit)
	r := s.service.Begin(context.Background(), a.charge(o))
	var reader sync.WaitGroup
	var read strings.Builder
	reader.Go(func() {
		for f := range r.Chunks() {
			if f.Data != nil {
				read.Write(f.Data.B)
				f.Data.Free()
			}
		}
	})
	time.Sleep(time.Duration(leaveAfter)*time.Millisecond + 500*time.Microsecond)
	r.Abandon()
	reader.Wait()
	kittest.Pass(time.Second)
	got, err := a.settled(o.ID)
	if err != nil {
		return 0, err
	}
	const prompt = 150 // tokens at most, reported or counted
	delivered := int64(strings.Count(read.String(), letter)) / 4
	switch most := 2 * c.most; {
	case got.Charged > prompt+10*most:
		return 0, fmt.Errorf("more than the model gives: %+v", got)
	case got.Reason != "finished" && got.Charged < 10*min(delivered, most):
		return 0, fmt.Errorf("less than the %d delivered tokens: %+v", delivered, got)
	case got.Reason == "client_left" && got.Charged < got.Usage.Input:
		return 0, fmt.Errorf("less than the prompt: %+v", got)
	}
	return got.Charged, nil
}

// TestBillOfAStreamDependsOnWhatItsProviderDid plays generated upstreams, whose usage is
// missing, negative, huge, repeated, decreasing or in any place, which ignore limits, repeat
// chunks and break off anywhere, to clients that leave after every event, through actors/text,
// meter and ledger. The bill is never below the text that was delivered if the answer did not
// come to its end, nor above what the model gives. A client that limits its answer pays no less
// for the same stream. Each request is settled once, and nothing stays held.
func TestBillOfAStreamDependsOnWhatItsProviderDid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawBillCase(rt)
		var broken error
		play(t, func(t *testing.T, s *stage) {
			a := s.priced(1_000_000_000)
			defer a.state.Close()
			s.most = c.most
			var pieces []any
			for _, e := range c.events {
				pieces = append(pieces, e, time.Millisecond)
			}
			s.add(catalog.Provider{Name: "a", Shape: c.upstream, BaseURL: "http://a.test", APIKeys: []string{"k1"}},
				&fake{scripts: []script{stream(pieces...)}})
			for leaveAfter := range len(c.events) + 1 {
				free, err := c.bill(s, a, leaveAfter, 0)
				limited, err2 := c.bill(s, a, leaveAfter, 1)
				if err = errors.Join(err, err2); err == nil && limited < free {
					err = fmt.Errorf("charged %d with a limit, and %d without", limited, free)
				}
				if err != nil {
					broken = fmt.Errorf("leaving after %d events: %w", leaveAfter, err)
					return
				}
			}
		})
		if broken != nil {
			rt.Fatal(broken)
		}
	})
}
