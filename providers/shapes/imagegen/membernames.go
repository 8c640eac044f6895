package imagegen

import "stagedoor/providers/fields"

// MemberNames are the names in requests of the image vendor's routes, as JSON and as a form: those
// that the gateway reads and those that the vendor documents.
var MemberNames = fields.NewNames("aspect_ratio", "character_reference_images", "character_reference_images_mask",
	"color_hex", "color_palette", "color_weight", "custom_model_uri", "describe_model_version", "detail", "image",
	"image_file", "image_request", "image_weight", "magic_prompt", "magic_prompt_option", "magic_prompt_version",
	"mask", "members", "model", "name", "negative_prompt", "num_images", "prompt", "rendering_speed", "resemblance",
	"resolution", "seed", "style_codes", "style_preset", "style_reference_images", "style_type")
