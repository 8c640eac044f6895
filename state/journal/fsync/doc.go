// Package fsync makes files and directories durable with the cheapest call that each system has for it.
package fsync
