// All files in one process, which has one browser.
import './chat.test.js';
import './first.test.js';
import './images.test.js';
import './page.test.js';
import './story.test.js';
