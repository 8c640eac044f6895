package test

// abuses lists the attacks of an untrusted client or provider that once succeeded, and the tests that fail if one
// succeeds again: a package and its tests. They are numbered by cause: reading without bounds (1), money (2),
// permissions of keys (3), people and OAuth (4), the wire (5), faulty providers and load (6), the disk (7).
// Number 8 lists guarantees that always held.
var abuses = []attack{
	{"1.1", "JSON that is nested deeper than a limit, inside strings and in replies as well", []string{
		"test TestWalksOverJSONHaveADepth TestOutsideTextIsReadWithinLimits",
		"providers/fields TestRequestsKeepTheLimits TestRepliesKeepTheLimits",
		"providers/shapes/registry TestJSONInsideRequestsKeepsTheLimits",
	}},
	{"1.2", "an object of a million names, and a key's rate before the body", []string{
		"test/sizes TestRequestsCostWhatTheirSizeIsWorth",
		"cmd/stagedoor TestTheRateOfAKeyIsCountedBeforeItsBodyIsRead",
		"http/auth TestConcurrencyAndShareAreCheckedBeforeTheBody",
		"http/text TestARefusedRequestDoesNotWaitForItsBody TestTheErrorIsThatOfTheFirstFailedCheck",
	}},
	{"1.3", "schemas that keep the simulator busy", []string{
		"providers/sandbox TestSamplesAreBounded TestGenerateStopsWhenEmitFails",
	}},
	{"1.4", "time and memory per byte of every handler and parser", []string{
		"cmd/stagedoor TestEveryHandlerCostsWhatTheSizeOfItsRequestIsWorth TestEveryRouteWithABodyIsMeasured",
		"actors/text TestStopSequencesCostWhatTheTextIsWorth",
		"test/sizes TestRepliesCostWhatTheirSizeIsWorth TestOtherReadersCostWhatTheirInputIsWorth",
		"test/sizes TestManyItemsCostWhatTheirSizeIsWorth TestManyEventsCostWhatTheirSizeIsWorth",
	}},
	{"1.5", "exit statuses and restarts", []string{
		"cmd/stagedoor TestAFatalErrorOfGoIsRestartedAndWrongUsageIsNot TestWrongUsageEndsWithCode64AndAHint",
	}},
	{"1.6", "limits of memory and descriptors", []string{
		"cmd/stagedoor TestTheLimitsOfTheProcessAreSharesOfItsMemory TestTheLeastLimitOfTheControlGroupsCounts",
		"test/ops TestLargeBodiesAreRefusedBeforeTheKernelKills",
		"http/text TestStoredContentCountsAsMemoryOfItsOwner",
		"test/faults TestIdleConnectionsDoNotTakeTheDescriptorsOfRequests TestMoreConnectionsThanDescriptors",
	}},
	{"1.7", "timers and contexts of calls that have ended", []string{
		"providers/upstream TestAnEndedCallLeavesNothingBehind TestAWatchdogThatFiresAsItsCallEndsStaysStopped",
	}},
	{"1.8", "a few bytes that name much that is stored", []string{
		"http/text TestAFewReferencesMakeNoLongRequest TestASearchForItemsReadsABoundedNumberOfBytes",
	}},
	{"1.9", "long answers of devices with passkeys", []string{
		"http/web/portal TestAPasskeyIsAddedAfterAConfirmationOnly",
	}},
	{"2.1", "completions with many prompts or best_of", []string{
		"http/text TestTranslatedCompletionsAreChargedForEveryPrompt TestWhatAClientAsksForDoesNotLowerItsBill",
		"actors/text TestHoldCoversAPromptAsOftenAsItIsSent",
	}},
	{"2.2", "a small max_tokens that the provider ignores", []string{
		"http/text TestWhatAClientAsksForDoesNotLowerItsBill",
		"actors/ledger TestBillDependsOnWhatTheProviderDid",
		"actors/text TestBillOfAStreamDependsOnWhatItsProviderDid",
		"actors/meter TestAbsurdUsageDoesNotTakeTheBalance",
	}},
	{"2.3", "a prompt without blanks", []string{
		"actors/meter TestTextIsNeverMedia",
	}},
	{"2.4", "a client that leaves after the partial images", []string{
		"http/media TestClientThatLeavesAnImageStreamPaysForWhatWasDelivered",
		"actors/ledger TestChargeOfMedia",
	}},
	{"2.5", "a client that leaves before the usage", []string{
		"providers/shapes TestAnswerBytesCountsTheTextOfDeltas",
		"actors/text TestClientThatLeavesAtTheEndPaysTheReportedUsage",
		"http/text TestAClientThatLeavesPaysForWhatWasDelivered",
	}},
	{"2.6", "a client that leaves before the first output", []string{
		"actors/ledger TestCharge",
		"http/text TestAClientThatLeavesPaysForWhatWasDelivered",
	}},
	{"2.7", "a settlement above its hold", []string{
		"actors/ledger TestOverrunLeavesADebtThatBlocksHoldsUntilItIsPaid TestSettlementBeyondTheHold",
	}},
	{"2.8", "negative counts in sums, and pauses that could not be ended", []string{
		"providers/dialogue TestSumsOfUsageStayNegativeOnceACountWas",
		"actors/runtime TestPauseThatCouldNotBeEndedIsNotSaidToBe",
	}},
	{"2.9", "the budget of a key without a user", []string{
		"http/text TestBudgetOfAKeyWithoutAUserCounts",
		"actors/ledger TestKeyWithoutAUserIsBoundByItsBudget",
	}},
	{"2.10", "requests without a price", []string{
		"http/text TestRequestsWithoutAPriceAreCounted TestReceiptsOfWhatCostNothingAreTheirOwners",
		"actors/ledger TestUsageWithoutAPriceIsCountedInBatches",
	}},
	{"2.11", "a clock that leaps between two payments", []string{
		"state TestPaymentKeyOutlivesAClockThatLeapsAndReturns",
	}},
	{"2.12", "an update of a key", []string{
		"actors/tokens TestUpdateKeyChangesOnlyTheFieldsItNames",
		"actors/tokens TestAnUpdateOfACeilingChangesOnlyTheFieldsItNames",
		"cmd/stagedoor TestOperatorsDay",
	}},
	{"2.13", "the length of a video", []string{
		"actors/ledger TestVideosAreChargedAsTheProviderMadeThem",
		"actors/videojob TestAVideoIsPaidAsItsProviderReportsIt",
	}},
	{"2.14", "numbers that overflow, and answers that do not count", []string{
		"http/text TestNoNumberOfAClientLowersWhatItsLimitReserves",
	}},
	{"3.1", "dot segments in a model's name", []string{
		"http/server TestAModelsNameInAPathHasNoDotSegments",
		"providers/upstream TestEverySegmentOfAPathIsEscaped",
		"providers/catalog TestNamesThatLeaveTheirPathAreFound",
	}},
	{"3.2", "names that fold to known ones", []string{
		"providers/fields TestNamesThatFoldToKnownOnesAreRefused TestClientsNamesPassOnlyAtTheirPlaces",
		"http/media TestNamesInOtherLettersAreRefused",
		"test TestEveryNameThatIsReadIsKnown TestOutsideNamesAreReadAsWritten",
		"test TestForwardedBytesMeanWhatTheGatewayBelieved",
	}},
	{"3.3", "keys beyond the ceiling of their user", []string{
		"actors/tokens TestAUserCreatesNoKeyBeyondTheCeilings TestOnlyThePartyThatDisabledAKeyEnablesIt",
		"test/admin TestCeilingsBindEveryKeyAtOnce",
		"state/identity TestCeilingsOfUserAndGroupBothBindAndOutliveARestart",
	}},
	{"3.4", "responses that are deleted or unknown", []string{
		"http/text TestADeletedResponseIsDeletedAtItsProvider",
		"http/text TestADeletedResponseStaysUnknownWhereUnknownOnesArePassedOn",
		"http/text TestUnknownResponsesArePassedOnlyWhereThatIsConfigured",
		"state/work TestIdsOfRemovedResponsesAreBoundedForEachOwner",
		"cmd/stagedoor TestResponsesThatLeaveByAgeOrNumberAreDeletedAtTheirProviders",
		"cmd/stagedoor TestResponsesThatLeaveByNumberAreDeletedAtTheirProviders",
	}},
	{"3.5", "stored responses, videos, tokens and watchers without end", []string{
		"state/work TestStoredResponsesStayWithinTheQuotaOfTheirOwner TestQuotaHoldsForResponsesThatComeAtOnce",
		"http/text TestOwnerBeyondItsQuotaOfStoredResponsesIsRefused",
		"http/live TestOneOwnerHasHalfOfTheFreeWatchers",
		"actors/videojob TestAnOwnerKeepsABoundedNumberOfVideos",
		"actors/tokens TestAGrantHasABoundedNumberOfAccessTokens",
	}},
	{"3.6", "receipts of other scopes, watchers beyond the rate, streams of revoked keys", []string{
		"http/text TestKeyReadsReceiptsThatItsScopesCover TestRequestsOfARevokedKeyEndWithinASecond",
		"http/text TestUntouchedStreamOfARevokedKeyEnds",
		"http/live TestKeysRequestRateCountsWatchers TestWatchersOfARevokedKeyEndWithinASecond",
	}},
	{"3.7", "one owner that takes a whole pool", []string{
		"actors/text TestOneOwnerCannotTakeAllMemoryOfTranslations",
		"http/overload TestOneOwnerCannotTakeAllRequests TestOneAddressCannotTakeAllRequests",
		"test/ops TestOneKeyCannotTakeAllRequests",
		"actors/background TestOneOwnerCannotTakeAllBackgroundResponses",
		"actors/videojob TestOneOwnerCannotTakeAllVideoJobs",
		"state/blobs TestOneOwnerCannotTakeAllFiles TestOneOwnerCannotTakeTheWholeStore",
		"state/share TestOwnerAloneGetsHalfAndALateOwnerGetsItsPart",
		"http/web/portal TestSearchesOfOneUserDoNotDelayThoseOfAnother",
	}},
	{"3.8", "long names of models", []string{
		"providers/shapes/registry TestModelNamesAreShort",
		"http/media TestModelNamesOfPicturesAndVideosAreShort",
		"providers/catalog TestNamesThatLeaveTheirPathAreFound",
	}},
	{"4.1", "a top-up link of another account", []string{
		"http/oauth TestTopUpPageNamesTheAccountAndAsksBeforeCreditingAnother",
		"http/oauth TestTopUpFormCreditsTheAccountThatItsPageNamed TestTopUpNeedsTheScopeBalance",
	}},
	{"4.2", "a flood of authorization requests", []string{
		"http/oauth TestAFloodOfRequestsEndsNoSignIn",
		"http/web/portal TestAFloodOfFormsOfOneUserForgetsNoFormOfAnother",
		"http/web/browser TestSealedTextsOpenInTheirBrowserForTheirPurposeAndInTimeOnly",
	}},
	{"4.3", "wrong passwords that lock a user out", []string{
		"actors/tokens TestStrangersCannotLockAUserOut",
		"http/oauth TestStrangersCannotLockOutAUserInAKnownBrowser",
	}},
	{"4.4", "errors before the user has signed in", []string{
		"http/oauth TestMistakesOfAnAppAreShownBeforeSignInAndRedirectedAfter",
	}},
	{"4.5", "the app beyond the limit, HSTS and a wrong redirect_uri", []string{
		"http/oauth TestTheAppBeyondTheLimitIsAConflictThatNamesIt TestWrongRedirectURILeavesTheCode",
		"http/server TestEveryReplyHasHSTSWhereTheIssuerIsHTTPS",
	}},
	{"4.6", "sub in userinfo", []string{
		"http/oauth TestFieldsOfUserinfoFollowTheScopes",
	}},
	{"5.1", "two lengths in a request, and Host in addresses", []string{
		"http/server TestContentLengthBesideTransferEncodingIsRefused",
		"http/media TestAddressesOfPicturesDoNotRepeatTheClientsHost",
	}},
	{"5.2", "a provider that names private addresses", []string{
		"providers/upstream TestALocalProviderNamesNoOtherLocalAddress TestAProviderNamesNoPrivateAddress",
	}},
	{"5.3", "a provider that repeats its key", []string{
		"providers/upstream TestNoFormOfAProvidersKeyReachesAClient TestNoSecretHeaderReachesAClient",
	}},
	{"5.4", "floods, fragments and large messages over a WebSocket, and a client of one that reads nothing", []string{
		"http/responsesocket TestAFloodOfOneConnectionLeavesNothing TestAClientThatNeverReadsIsDropped",
		"http/responsesocket TestAMessageThatIsTooLargeEndsTheConnectionWith1009 TestAClientThatIgnoresTheCloseIsCutOff",
		"http/responsesocket TestMemoryOfConnectionsIsBoundedAndShared",
	}},
	{"5.5", "requests that net/http cannot read", []string{
		"http/server TestErrorsOfNetHTTPAreInTheEnvelope",
	}},
	{"6.1", "a stream without [DONE]", []string{
		"actors/text TestAStreamWithoutDoneIsACompleteAnswer",
	}},
	{"6.2", "101 Switching Protocols", []string{
		"providers/upstream TestSwitchingProtocolsIsRefused",
	}},
	{"6.3", "idle at the start of a stream", []string{
		"providers/upstream TestIdleBindsFromTheHeadersOn",
	}},
	{"6.4", "events that are not JSON, and data after the reason", []string{
		"actors/text TestEventsAreJudgedByOneRuleOnBothLanes TestNothingAfterTheReasonSpoilsAnAnswer",
	}},
	{"6.5", "a flooding key whose requests age", []string{
		"actors/throttle TestAgeingNeverMovesARequestAheadOfAnotherKey",
		"actors/throttle TestAFloodingKeyNeverDelaysKeysBelowTheirShare",
	}},
	{"6.6", "a reset or silence after the reason", []string{
		"actors/text TestNothingAfterTheReasonSpoilsAnAnswer TestUsageAfterTheReasonIsWaitedFor",
	}},
	{"6.7", "half-closed clients, and 499 on the wire", []string{
		"http/server TestAClientThatClosesItsSendingSideGetsItsReply",
		"test/faults TestAClientThatStopsSendingGetsItsAnswer",
		"http/envelope TestTheStatusOfAClientThatLeftIsNeverSent",
	}},
	{"6.8", "a 429 that can never succeed", []string{
		"actors/text TestARequestThatNeverFitsHoldsUpNobodyElse",
		"providers/upstream TestARequestThatNeverFitsIsKnownByItsMessage",
	}},
	{"6.9", "a client that reads a stored stream slowly", []string{
		"state/work TestReadingEventsHoldsUpNoCommit",
		"http/text TestAStoredStreamIsSentInPiecesOfWholeEvents",
	}},
	{"7", "what requests leave on the disk", []string{
		"state/money TestAPricedRequestTakesFewBytes TestPackedLedgerReadsTheSame",
		"state/money TestReadersDuringAPackSeeEveryEntry TestFoldTakesOldEntriesWithTheirReceipts",
		"state/journal TestBackupsWriteOnlyWhatHasChanged TestNearlyFullDiskOnlyReads TestDiskSpaceIsKnown",
		"test/telemetry TestEveryQueryOfDashboardAndAlertsFindsWhatTheGatewaySays",
	}},
	{"8.1", "kills, power cuts, full and failing disks", []string{
		"test/soak TestNothingAcknowledgedIsLost",
		"state TestKilledProcessLosesNothingAcknowledged",
		"state/journal TestPowerCutLosesNothingAcknowledged TestFullDiskLosesNothingAndIsNotForEver",
		"test/durable TestFullDiskRefusesWritesAndLosesNothing",
	}},
	{"8.2", "clients that leave, changed files and restarts under load", []string{
		"test/faults TestClientThatLeavesCancelsTheUpstream",
		"cmd/stagedoor TestRequestsGoOnWhileTheConfigurationChanges",
		"test/ops TestRestartsUnderLoadRefuseNobody",
	}},
	{"8.3", "parallel exchanges, and what belongs to others", []string{
		"actors/tokens TestOneOfManyExchangesWinsAndReplaysEndItsTokens TestHistoriesAreLinearizable",
		"http/web/portal TestOthersThingsDoNotExist",
	}},
	{"8.4", "framing of requests, private addresses, secrets", []string{
		"http/server TestFramingFindsTheRequestsThatNetHTTPFinds TestWhatNetHTTPMakesOfOddRequests",
		"actors/webhook TestPrivateAddressesAreNotCalledHoweverTheyAreNamed",
		"cmd/stagedoor/config TestSecretsNeverShowThemselves",
		"test/telemetry TestMetricsTellNoSecrets",
	}},
}
