// Package mp4 recognises uploaded MP4 videos by their content and reads their size and length
// from the header (ISO/IEC 14496-12). It does not decode pictures, so a file that it accepts
// can still be refused by a provider.
//
// # Usage
//
// ReadFile reads an upload, checks it, and returns a File whose Header has the size and length by
// which a job is priced. Sniff tells by the first bytes whether a file can be an MP4 at all. Close
// frees the file and may be called by the cleanup and by an error path alike.
//
// # Hostile files
//
// The parser reads only the header, skips every box by its length, and bounds the number of boxes
// and the bytes that it reads of them. If two lengths in a header differ, the longer one counts, so
// that a header that contradicts itself cannot lower a price.
package mp4
