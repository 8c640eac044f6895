// All files in one process, which loads each client once.
import './anthropic.test.js';
import './embeddings.test.js';
import './genai.test.js';
import './openai-chat.test.js';
import './openai-images.test.js';
import './openai-responses.test.js';
import './openai-videos.test.js';
