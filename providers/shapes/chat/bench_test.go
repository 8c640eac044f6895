package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/chat"
)

// conversation is a request of about size bytes: prose with some escapes and
// some characters beyond ASCII, and ten tools if it is long.
func conversation(size int) []byte {
	prose := strings.Repeat(`Once more the old man said \"jump\", and all 13 dogs slept on;\n in the caf\u00e9 a na`+"\u00efve \u4f60\u597d was heard. ", 9)
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"be kind"}`)
	for b.Len() < size {
		fmt.Fprintf(&b, `,{"role":"user","content":"%s"}`, prose)
	}
	b.WriteString(`]`)
	if size > 32<<10 {
		b.WriteString(`,"tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"read","description":"reads a file",`+
			`"parameters":{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"}},"required":["path"]}}},`, 10), ",") + `]`)
	}
	b.WriteString(`,"temperature":0.7,"stream":false}`)
	return []byte(b.String())
}

// BenchmarkUntouched is all that the untouched lane does to a request.
func BenchmarkUntouched(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		body := conversation(size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				head, err := chat.Shape.Check(body, shapes.Params{})
				if err != nil {
					b.Fatal(err)
				}
				call, err := chat.Shape.Patch(body, shapes.Params{}, head, dialogue.Target{Model: "m"},
					&dialogue.Report{}, nil)
				if err != nil || len(call.Body) != len(body) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReply is all that it does to a whole reply of 1 KiB.
func BenchmarkReply(b *testing.B) {
	body := []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("word ", 200) + `"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":200,"total_tokens":209}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := chat.Shape.NewTap(shapes.TapOptions{}, nil).Body(body); err != nil {
			b.Fatal(err)
		}
	}
}
