// Package schema knows JSON Schema as the providers' structured outputs see it:
// it walks schema positions only, strips what a target refuses, closes objects,
// converts between JSON Schema and Gemini's OpenAPI subset, and decides whether
// a wish for structured output can be kept. All functions are pure; they never
// change their input. Sources: gateway.md 4.8, design/translation.md 6 and 7.
package schema
