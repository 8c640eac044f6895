package images

import "stagedoor/providers/fields"

// MemberNames are the names in requests for images, as JSON and as a form: those
// that the gateway reads and those that the vendor documents.
var MemberNames = fields.NewNames("background", "file_id", "image", "image_url", "images", "input_fidelity", "mask",
	"model", "moderation", "n", "output_compression", "output_format", "partial_images", "prompt", "quality",
	"response_format", "size", "stream", "style", "user")
