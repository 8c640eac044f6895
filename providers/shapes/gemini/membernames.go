package gemini

import "stagedoor/providers/fields"

// memberNames are the members that the shape reads in requests, at any depth.
var memberNames = fields.NewCamelNames(
	"allowedFunctionNames", "args", "aspectRatio", "cachedContent", "candidateCount", "codeExecution",
	"codeExecutionResult", "contents", "data", "description", "displayName", "endOffset", "executableCode",
	"fileData", "fileUri", "fps", "frequencyPenalty", "functionCall", "functionCallingConfig",
	"functionDeclarations", "functionResponse", "generateContentRequest", "generationConfig", "googleSearch",
	"googleSearchRetrieval", "id", "imageConfig", "includeThoughts", "inlineData", "labels", "logprobs",
	"maxOutputTokens", "mediaResolution", "mimeType", "mode", "model", "name", "parameters",
	"parametersJsonSchema", "parts", "presencePenalty", "response", "responseJsonSchema", "responseLogprobs",
	"responseMimeType", "responseModalities", "responseSchema", "role", "safetySettings", "seed", "serviceTier",
	"speechConfig", "startOffset", "stopSequences", "store", "systemInstruction", "temperature", "text",
	"thinkingBudget", "thinkingConfig", "thinkingLevel", "thought", "thoughtSignature", "title", "toolCall",
	"toolConfig", "toolResponse", "tools", "topK", "topP", "urlContext", "videoMetadata", "willContinue",
)

func (shape) Names() *fields.Names { return memberNames }
