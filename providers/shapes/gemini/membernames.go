package gemini

import "stagedoor/providers/fields"

// memberNames are the names in requests of this shape, at any depth: those that the gateway reads
// and those that the vendor documents.
var memberNames = fields.NewCamelNames("adaptationPhrases", "allowedFunctionNames", "args", "aspectRatio", "audio",
	"audioTrackExtraction", "audioTranscriptionConfig", "autoTruncate", "behavior", "bitRate", "cachedContent",
	"candidateCount", "category", "code", "codeExecution", "codeExecutionResult", "computerUse", "content", "contents",
	"customVocabulary", "data", "delivery", "description", "diarization", "disabledSafetyPolicies", "displayName",
	"documentOcr", "dynamicRetrievalConfig", "dynamicThreshold", "echoTargetLanguage", "embedContentConfig",
	"enableAffectiveDialog", "enableEnhancedCivicAnswers", "enablePromptInjectionDetection", "enableWidget",
	"endOffset", "endTime", "environment", "excludedPredefinedFunctions", "executableCode", "fileData", "fileSearch",
	"fileSearchStoreNames", "fileUri", "format", "fps", "frequencyPenalty", "functionCall", "functionCallingConfig",
	"functionDeclarations", "functionResponse", "generateContentRequest", "generationConfig", "googleMaps",
	"googleSearch", "googleSearchRetrieval", "headers", "id", "image", "imageConfig", "imageSearch", "imageSize",
	"includeServerSideToolInvocations", "includeThoughts", "inlineData", "labels", "language", "languageAuto",
	"languageCode", "languageCodes", "languageHints", "latLng", "latitude", "level", "logprobs", "longitude",
	"maxOutputTokens", "mcpServers", "mediaProcessing", "mediaResolution", "metadataFilter", "mimeType", "mode",
	"model", "multiSpeakerVoiceConfig", "name", "outcome", "output", "outputDimensionality", "parameters",
	"parametersJsonSchema", "partMetadata", "parts", "prebuiltVoiceConfig", "presencePenalty", "requests", "response",
	"responseFormat", "responseJsonSchema", "responseLogprobs", "responseMimeType", "responseModalities",
	"responseSchema", "retrievalConfig", "role", "safetySettings", "sampleRate", "scheduling", "schema", "searchTypes",
	"seed", "serviceTier", "speaker", "speakerVoiceConfigs", "speechConfig", "sseReadTimeout", "startOffset",
	"startTime", "stopSequences", "store", "streamableHttpTransport", "systemInstruction", "targetLanguageCode",
	"taskType", "temperature", "terminateOnClose", "text", "thinkingBudget", "thinkingConfig", "thinkingLevel",
	"thought", "thoughtSignature", "threshold", "timeRangeFilter", "timeout", "title", "toolCall", "toolConfig",
	"toolName", "toolResponse", "toolType", "tools", "topK", "topP", "translationConfig", "type", "url", "urlContext",
	"videoMetadata", "voiceConfig", "voiceName", "webSearch", "willContinue",
	"wordTimestamp").Except(clientNamed("")...).Except(clientNamed("generateContentRequest.")...)

// clientNamed returns the places of a request in which the names are the client's own: schemas,
// arguments, results and labels. Requests to countTokens have a whole request at prefix.
func clientNamed(prefix string) []string {
	paths := []string{
		"labels", "generationConfig.responseSchema", "generationConfig.responseJsonSchema",
		"generationConfig.responseFormat.text.schema", "tools.functionDeclarations.parameters",
		"tools.functionDeclarations.parametersJsonSchema", "tools.functionDeclarations.response",
		"tools.functionDeclarations.responseJsonSchema", "tools.mcpServers.streamableHttpTransport.headers",
	}
	for _, parts := range []string{"contents.parts.", "systemInstruction.parts."} {
		for _, name := range []string{
			"functionCall.args", "functionResponse.response", "toolCall.args", "toolResponse.response", "partMetadata",
		} {
			paths = append(paths, parts+name)
		}
	}
	for i := range paths {
		paths[i] = prefix + paths[i]
	}
	return paths
}
