package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// attack is something that must not work, and where that is tested: a package and its tests, or a file
// of the strict clients.
type attack struct {
	id, what string
	in       []string
}

// attacks are the attacks on the authorization server that are tested, by the letters
// and numbers under which the tests' comments name them.
var attacks = []attack{
	{"A", "variants of the redirect address",
		[]string{"http/oauth TestOnlyTheRegisteredAddressIsEverRedirectedTo TestLoopbackAddressHasNoOtherSpelling",
			"actors/tokens TestCodeMisuse TestRedirectRules"}},
	{"B1", "a code twice", []string{"actors/tokens TestReplayedCodeEndsWhatItBrought TestReplayWithoutAuthenticationEndsNothing", "http/oauth TestReplayedCodeEndsWhatItBrought"}},
	{"B2", "racing exchanges", []string{"actors/tokens TestOneOfManyExchangesWinsAndReplaysEndItsTokens"}},
	{"B3", "codes that are expired, others', or without their proof",
		[]string{"actors/tokens TestCodeMisuse TestVerifierProvesTheChallenge",
			"http/oauth TestTokenRequestsThatAreRefused TestMistakesOfAnAppAreShownBeforeSignInAndRedirectedAfter"}},
	{"B4", "a kill between commit and answer",
		[]string{"actors/tokens TestACodeIsUsedEvenIfItsAnswerIsLost TestKilledRegistryForgetsNothingItAcknowledged",
			"test/soak TestNothingAcknowledgedIsLost"}},
	{"B5", "a code at another app", []string{"actors/tokens TestCodeMisuse TestReplayedCodeEndsWhatItBrought"}},
	{"C1", "a refresh token that was rotated", []string{"actors/tokens TestReusedRefreshTokenEndsTheFamily"}},
	{"C2", "racing refreshes", []string{"actors/tokens TestOneOfManyRefreshesWinsAndReuseEndsItsTokens " +
		"TestAllOfManyRefreshesGetOneSuccessorInTheGrace"}},
	{"C3", "refreshes by others and for more",
		[]string{"actors/tokens TestRefreshRefusals TestNarrowedScopeDoesNotShrinkTheGrant TestDisabledUserAndAppAreRefusedAtOnceAndComeBack"}},
	{"C4", "a token of two generations back within the grace",
		[]string{"actors/tokens TestReusedRefreshTokenEndsTheFamily"}},
	{"C5", "a refresh whose answer was lost in a crash",
		[]string{"actors/tokens TestLostAnswerIsGivenOnceMoreWithinTheGrace"}},
	{"D1", "states that are missing or hostile",
		[]string{"http/oauth TestMistakesOfAnAppAreShownBeforeSignInAndRedirectedAfter TestStateComesBackAsItWas"}},
	{"D2", "forms of other sites", []string{"http/oauth TestForeignFormsAreRefused TestGetRequestsNeverDecide",
		"http/web/portal TestEveryFormWantsItsOwnBrowser"}},
	{"D3", "pages in frames", []string{"http/oauth TestPagesAreUnframedAndLoadNothingForeign"}},
	{"D4", "a planted session", []string{"http/oauth TestSessionBeginsAnewAtSignIn"}},
	{"D5", "a sign-in page that leads elsewhere", []string{"http/oauth TestSignInLeadsNowhereElse"}},
	{"D6", "another's consent, twice or late",
		[]string{"http/oauth TestForeignFormsAreRefused TestStaleAndRepeatedFormsGetNoCode"}},
	{"E1", "mixed up servers", []string{"http/oauth TestMistakesOfAnAppAreShownBeforeSignInAndRedirectedAfter TestMetadataListsWhatWorks", "test/oauth/js/oauth4webapi.test.js"}},
	{"E2", "automatic authorization", []string{"http/oauth TestAutoAuthorizeAsksUnlessTheUserSaidYes TestAutoAuthorizeKeepsItsMeaningDuringARequest", "actors/tokens TestEarlierYesCovers TestAutomaticGrantsAreFew"}},
	{"F1", "secrets in logs, pages and files",
		[]string{"test/soak TestNothingAcknowledgedIsLost", "http/oauth TestResourceRequestsThatAreRefused"}},
	{"F2", "addresses that pages give away", []string{"http/oauth TestPagesAreUnframedAndLoadNothingForeign"}},
	{"F3", "tokens elsewhere than in the header", []string{"http/oauth TestResourceRequestsThatAreRefused"}},
	{"G1", "guessing by the time it takes", []string{"actors/tokens TestAuthenticationTakesTheSameTime TestEveryRefusedLoginIsTheSameWork", "http/oauth TestUnknownUserAndWrongPasswordLookTheSame TestGuessesAreTreatedAlike"}},
	{"G2", "ten thousand guesses",
		[]string{"actors/tokens TestTenThousandGuessesFindNoSecret TestWrongSecretsAreLimitedAndTheRightOneIsNot"}},
	{"G3", "a flood of logins", []string{"actors/tokens TestFloodOfLoginsDelaysNoOtherUser"}},
	{"H1", "odd scopes", []string{"http/oauth TestScopesAreNormalised TestMistakesOfAnAppAreShownBeforeSignInAndRedirectedAfter"}},
	{"H2", "odd requests", []string{"http/oauth TestTokenRequestsThatAreRefused TestMultipartIsNoForm TestErrorsWithoutAHandlerHaveTheSameBody"}},
	{"H3", "two ways to authenticate at once", []string{"http/oauth TestTokenRequestsThatAreRefused"}},
	{"H4", "a Host that is not ours", []string{"http/oauth TestHostHeaderIsNeverBelieved"}},
	{"I1", "a token right after its revocation",
		[]string{"actors/tokens TestNothingWorksAfterTheRevocationWasAnswered TestRefreshAgainstRevocation",
			"http/oauth TestRevokedTokensAreDeadAtOnce"}},
	{"I2", "answers that no order explains", []string{"actors/tokens TestHistoriesAreLinearizable"}},
	{"I3", "a kill at any moment", []string{"actors/tokens TestKilledRegistryForgetsNothingItAcknowledged",
		"test/soak TestNothingAcknowledgedIsLost"}},
	{"J1", "strict clients", []string{"test/oauth/go TestWholeFlow", "test/oauth/js/oauth4webapi.test.js",
		"test/oauth/js/openid-client.test.js", "test/oauth/js/simple-oauth2.test.js"}},
	{"J2", "what other servers test", []string{"http/oauth TestCasesOfOtherAuthorizationServers"}},
	{"K1", "hostile names and addresses of apps",
		[]string{"http/oauth TestHostileNamesAreText", "actors/tokens TestAppRules TestRedirectRules"}},
	{"K2", "a rotated secret", []string{"actors/tokens TestOldSecretEndsAfterADay"}},
	{"K3", "clocks that jump", []string{"actors/tokens TestClockMovesReviveNothing"}},
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// TestEveryAttackIsTested looks for the tests: one that was renamed or removed leaves
// its attack untested.
func TestEveryAttackIsTested(t *testing.T) {
	known := map[string][]string{}
	for _, a := range slices.Concat(attacks, abuses) {
		for _, in := range a.in {
			words := strings.Fields(in)
			where := filepath.Join("..", filepath.FromSlash(words[0]))
			if len(words) == 1 {
				if _, err := os.Stat(where); err != nil {
					t.Errorf("%s, %s: %v", a.id, a.what, err)
				}
				continue
			}
			if known[where] == nil {
				known[where] = testsIn(t, where)
			}
			for _, name := range words[1:] {
				if !slices.Contains(known[where], name) {
					t.Errorf("%s, %s: there is no %s in %s", a.id, a.what, name, words[0])
				}
			}
		}
	}
}

func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
