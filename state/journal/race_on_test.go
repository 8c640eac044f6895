//go:build race

package journal

// underRaceDetector: the race detector watches, and everything takes ten times as long.
const underRaceDetector = true
