package pages

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// nameColours is the number of colours of names, c1 to c8 in the style sheet.
const nameColours = 8

// vendors have colours of their own, which their models share. The first name that a model's name contains counts.
var vendors = []struct {
	part   string
	colour int
}{
	{"claude", 3}, {"anthropic", 3}, {"gpt", 2}, {"openai", 2}, {"gemini", 6}, {"google", 6}, {"gemma", 6},
	{"llama", 1}, {"meta", 1}, {"mistral", 7}, {"mixtral", 7}, {"qwen", 4}, {"deepseek", 5},
}

// nameColour returns the number of the colour of a model, a provider, a group or a person. It depends on the name only,
// so that the same thing has the same colour on all pages and on all days.
func nameColour(name string) int {
	lower := strings.ToLower(name)
	for _, v := range vendors {
		if strings.Contains(lower, v.part) {
			return v.colour
		}
	}
	h := fnv.New32a()
	h.Write([]byte(name)) // never fails
	return int(h.Sum32()%nameColours) + 1
}

// nameClass returns the class of the colour of a name.
func nameClass(name string) string { return "c" + strconv.Itoa(nameColour(name)) }
