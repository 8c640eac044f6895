//go:build !race

package journal

const underRaceDetector = false
