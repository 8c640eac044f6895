package responsesocket_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// BenchmarkTurn compares a turn of 20 tokens over a WebSocket with one over HTTP.
func BenchmarkTurn(b *testing.B) {
	const input = "[sandbox: tokens=20]"
	b.Run("socket", func(b *testing.B) {
		g := open(b)
		c := g.connect()
		for b.Loop() {
			c.turn(create("sandbox", input))
		}
	})
	b.Run("http", func(b *testing.B) {
		g := open(b)
		for b.Loop() {
			g.do("POST", "/v1/responses", `{"model":"sandbox","stream":true,"store":false,"input":"`+input+`"}`, "all")
		}
	})
}

// BenchmarkIdleConnection reports what a connection takes on both sides, with and without a remembered response.
func BenchmarkIdleConnection(b *testing.B) {
	for _, words := range []int{0, 10_000} {
		b.Run(fmt.Sprint(words, " words"), func(b *testing.B) {
			g := open(b)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			const connections = 45
			for range connections {
				c := g.connect()
				if words > 0 {
					c.turn(create("sandbox", "[sandbox: tokens=1]"+strings.Repeat(" word", words)))
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/connections, "B/connection")
		})
	}
}
