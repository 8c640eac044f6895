package videos

import "stagedoor/providers/fields"

// MemberNames are the names in requests for videos, as JSON and as a form: those
// that the gateway reads and those that the vendor documents.
var MemberNames = fields.NewNames("characters", "file_id", "id", "image_url", "input_reference", "model", "name",
	"prompt", "seconds", "size", "user", "video")
