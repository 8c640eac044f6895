package dialogue

import (
	"bytes"
	"encoding/base64"
	"path"
	"strings"
	"unicode/utf8"
)

// DocumentMIME guesses the type of a document that a client of the chat or responses shape gives without one, by its
// name. These shapes were made for PDF; the list holds what their vendor documents beyond.
func DocumentMIME(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".log":
		return "text/plain"
	case ".md":
		return "text/markdown"
	case ".csv":
		return "text/csv"
	case ".json":
		return "application/json"
	case ".html", ".htm":
		return "text/html"
	}
	return "application/pdf"
}

// ReadText decodes a document of plain text, because every upstream can read text and few read such documents.
func (m *Media) ReadText() {
	if m.Base64 == "" || !strings.HasPrefix(m.MIME, "text/") && m.MIME != "application/json" {
		return
	}
	text, err := base64.StdEncoding.DecodeString(m.Base64)
	if err == nil && utf8.Valid(text) && !bytes.ContainsRune(text, 0) && len(bytes.TrimSpace(text)) > 0 {
		m.Text, m.Base64 = string(text), ""
	}
}

// FileName returns the name of a document for a shape that requires one: its own, or one with the extension of its
// type.
func (m *Media) FileName() string {
	if m.Name != "" {
		return m.Name
	}
	kind, _, _ := strings.Cut(m.MIME, ";")
	switch _, minor, _ := strings.Cut(kind, "/"); {
	case m.MIME == "":
		return "document.pdf"
	case len(minor) > 5 || strings.ContainsAny(minor, ".+-*/"): // such as vnd.ms-excel, which is no extension
		return "document"
	default:
		return "document." + minor
	}
}
