//go:build !race

package tokens_test

const underRaceDetector = false
