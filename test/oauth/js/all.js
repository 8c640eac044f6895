// All files in one process, which has one browser. The tests of account.test.js change the user's password at last, so
// they follow those that sign in as the same user.
import './oauth4webapi.test.js';
import './openid-client.test.js';
import './simple-oauth2.test.js';
import './browser.test.js';
import './account.test.js';
import './signin.test.js';
