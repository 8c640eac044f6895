// Package embedded makes the sandbox's video jobs a video.Upstream inside the
// gateway, without HTTP. Faults are ordered in prompts.
//
// Nothing is made while nobody asks, and an id says all about its job, so jobs
// outlive the process. A submission that is repeated after a restart begins the
// same job (the key is in its id, and its video is the same to the byte), only
// later: the first one left nothing behind that could be found or paid for.
package embedded
