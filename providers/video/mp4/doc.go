// Package mp4 recognises uploaded MP4 videos by their content and reads their size and length
// from the header (ISO/IEC 14496-12). It does not decode pictures, so a file that it accepts
// can still be refused by a provider.
package mp4
