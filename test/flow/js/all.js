// All files in one process, which has one browser.
import './flow.test.js';
import './providers.test.js';
import './requests.test.js';
