import { ActivationHasher, newCode } from '../../activation/activation-code.ts';
import { ProviderError, type CodeProvider, type OutgoingCode } from '../../activation/provider.ts';
import { KlatchError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { AddressKind } from '../../model/proof-address.ts';
import { setProviderReference } from '../../storage/accounts/activations.ts';
import type { SourceKey } from '../../model/source-key.ts';
import type { Pool } from '../../storage/db/pool.ts';
import { RateLimiter } from './rate-limiter.ts';

/** How long the result of a provider's health check is reused, if the provider is healthy and if it is not. */
const HEALTHY_PROVIDER_TTL_MS = 10_000;
const UNHEALTHY_PROVIDER_TTL_MS = 3_000;
/** The most codes that are being sent at the same time, and the most that the activation gate is checking. */
const MAX_CONCURRENT_SENDS_AND_CHECKS = 32;
/** Limits the sign-in requests of one source (a client network): a burst, and then this many a second. */
const SIGN_IN_STEP_BURST_PER_SOURCE = 100;
const SIGN_IN_STEPS_PER_SECOND_PER_SOURCE = 5;
const MAX_RATE_LIMITED_SOURCES = 10_000;
const SECONDS_PER_HOUR = 3_600;
/** At most once in this time the log reports that codes are not sent because the hourly budget is used up. */
const BUDGET_LOG_INTERVAL_MS = 10 * 60_000;

/** Counts since the start of the process, for metrics. */
export interface ActivationMetrics {
  startedActivations: number;
  /** Refused activations, by reason. */
  readonly refused: { source: number; address: number; installation: number; resend: number; provider: number };
  readonly codes: { sent: number; failed: number };
  incorrectCodeAttempts: number;
  /** Sessions that were opened, by kind of proof. */
  readonly signInsByProof: { code: number; link: number; sign_up: number };
}

interface ProviderHealth {
  readonly probeResult: Promise<boolean>;
  healthValidUntilMs: number;
}

/** Sends and checks codes with the configured providers, within common bounds. Its log entries name no address. */
export class ActivationCodes {
  readonly metrics: ActivationMetrics = {
    startedActivations: 0,
    refused: { source: 0, address: 0, installation: 0, resend: 0, provider: 0 },
    codes: { sent: 0, failed: 0 },
    incorrectCodeAttempts: 0,
    signInsByProof: { code: 0, link: 0, sign_up: 0 },
  };
  readonly codeAndSourceHasher: ActivationHasher;
  readonly providers: readonly CodeProvider[];
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #signInStepLimiter = new RateLimiter<SourceKey>({
    perSecond: SIGN_IN_STEPS_PER_SECOND_PER_SOURCE,
    burst: SIGN_IN_STEP_BURST_PER_SOURCE,
    maxKeys: MAX_RATE_LIMITED_SOURCES,
  });
  readonly #uncodedSignUpLimiter: RateLimiter<SourceKey>;
  readonly #health = new Map<CodeProvider, ProviderHealth>();
  readonly #sendsInFlight = new Set<Promise<void>>();
  #codeChecksInFlight = 0;
  #budgetLoggedAtMs = -Infinity;
  #isStopped = false;

  constructor(
    providers: readonly CodeProvider[],
    dependencies: { secret: string; pool: Pool; log: Log; signUpsPerSourcePerHour: number },
  ) {
    this.providers = providers;
    this.#uncodedSignUpLimiter = new RateLimiter({
      perSecond: dependencies.signUpsPerSourcePerHour / SECONDS_PER_HOUR,
      burst: dependencies.signUpsPerSourcePerHour,
      maxKeys: MAX_RATE_LIMITED_SOURCES,
    });
    this.codeAndSourceHasher = new ActivationHasher(dependencies.secret);
    this.#pool = dependencies.pool;
    this.#log = dependencies.log;
  }

  /** Counts a request for signing in. Throws `rate_limited` for a source that makes too many. */
  limitSignInSteps(source: SourceKey): void {
    if (this.#signInStepLimiter.reserve(source, 0) === null) throw new KlatchError('rate_limited');
  }

  /** Counts a sign-up without a code. Throws `rate_limited` for a source that has made too many in an hour. */
  limitUncodedSignUps(source: SourceKey): void {
    if (this.#uncodedSignUpLimiter.reserve(source, 0) !== null) return;
    const sentence = 'Too many accounts were created from your network in the last hour; please try again later';
    throw new KlatchError('rate_limited', { sentence });
  }

  /**
   * The first configured provider for this kind of address and, if `name` is given, of this name; null: there is none.
   */
  chooseProvider(kind: AddressKind, name: string | undefined): CodeProvider | null {
    return this.providers.find((each) => each.kind === kind && (name === undefined || each.name === name)) ?? null;
  }

  /**
   * Throws `provider_unavailable` if the provider cannot send codes at this moment. The provider is probed from time to
   * time, and without the address: so the error does not show whether an account has the address.
   */
  async requireHealthy(provider: CodeProvider): Promise<void> {
    const now = performance.now();
    let health = this.#health.get(provider);
    if (health === undefined || health.healthValidUntilMs < now) {
      health = { probeResult: this.#probe(provider), healthValidUntilMs: Infinity };
      this.#health.set(provider, health);
    }
    const currentHealth = health;
    const isHealthy = await currentHealth.probeResult;
    if (currentHealth.healthValidUntilMs === Infinity)
      currentHealth.healthValidUntilMs =
        performance.now() + (isHealthy ? HEALTHY_PROVIDER_TTL_MS : UNHEALTHY_PROVIDER_TTL_MS);
    if (isHealthy) return;
    this.metrics.refused.provider += 1;
    throw new KlatchError('provider_unavailable');
  }

  /**
   * A new code for an activation. `localCheckVerifier` is the verifier with which this server checks the code; null:
   * the provider checks it.
   */
  newCode(provider: CodeProvider, transactionHash: string): { code: string; localCheckVerifier: string | null } {
    const code = newCode();
    const verifier = this.codeAndSourceHasher.codeVerifier(transactionHash, code);
    return { code, localCheckVerifier: provider.verifyCode === null ? verifier : null };
  }

  /**
   * Sends a code after the current request has been answered: the time of the answer must not show whether a code is
   * sent. Failures are logged and counted.
   */
  sendInBackground(provider: CodeProvider, transactionHash: string, code: OutgoingCode): void {
    if (this.#isStopped || this.#sendsInFlight.size >= MAX_CONCURRENT_SENDS_AND_CHECKS) {
      this.#countAndLogSendFailure(provider, new ProviderError(this.#isStopped ? 'stopped' : 'busy'));
      return;
    }
    const sending = new Promise<void>((resolve) => {
      setImmediate(() => void this.#send(provider, transactionHash, code).finally(resolve));
    });
    this.#sendsInFlight.add(sending);
    void sending.finally(() => this.#sendsInFlight.delete(sending));
  }

  /** Counts an activation whose code is not sent because the hourly budget is used up. */
  recordHourlyBudgetExceeded(): void {
    this.metrics.refused.installation += 1;
    const now = performance.now();
    if (now - this.#budgetLoggedAtMs < BUDGET_LOG_INTERVAL_MS) return;
    this.#budgetLoggedAtMs = now;
    this.#log.warn('codes are not sent: as many were sent in the last hour as limits.codes-per-hour allows');
  }

  /** Whether the code is right. Throws `provider_unavailable` if the activation gate fails or is too busy. */
  async checkCode(
    provider: CodeProvider,
    { transactionHash, verifier, code }: { transactionHash: string; verifier: string | null; code: string },
  ): Promise<boolean> {
    if (provider.verifyCode === null) return this.codeAndSourceHasher.matchesVerifier(transactionHash, code, verifier);
    if (this.#codeChecksInFlight >= MAX_CONCURRENT_SENDS_AND_CHECKS)
      throw this.#loggedUnavailableError(provider, new ProviderError('busy'));
    this.#codeChecksInFlight += 1;
    try {
      return await provider.verifyCode(verifier, code);
    } catch (error) {
      throw this.#loggedUnavailableError(provider, error);
    } finally {
      this.#codeChecksInFlight -= 1;
    }
  }

  /** Stops the providers, and waits until no code is being sent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.providers.map((provider) => provider.stop()));
    await Promise.all(this.#sendsInFlight);
  }

  async #probe(provider: CodeProvider): Promise<boolean> {
    try {
      await provider.probe();
      return true;
    } catch (error) {
      this.#loggedUnavailableError(provider, error);
      return false;
    }
  }

  async #send(provider: CodeProvider, transactionHash: string, code: OutgoingCode): Promise<void> {
    try {
      const verifier = await provider.send(code);
      // The gate's code can only be checked with the gate's verifier: the code counts as sent once the verifier is
      // stored.
      if (verifier !== null) await this.#pool.run((sql) => setProviderReference(sql, transactionHash, verifier));
      this.metrics.codes.sent += 1;
    } catch (error) {
      this.#countAndLogSendFailure(provider, error);
    }
  }

  #countAndLogSendFailure(provider: CodeProvider, error: unknown): void {
    this.metrics.codes.failed += 1;
    this.#log.warn('a code could not be sent', { provider: provider.name, ...providerFailureLogFields(error) });
  }

  #loggedUnavailableError(provider: CodeProvider, error: unknown): KlatchError {
    this.#log.warn('a provider of codes is away', { provider: provider.name, ...providerFailureLogFields(error) });
    return new KlatchError('provider_unavailable', { cause: error });
  }
}

/**
 * The log fields of an error. Of a provider's error, only `failure` and `detail` are logged, which quote no address.
 * All other errors come from the database, whose messages quote no address either.
 */
function providerFailureLogFields(error: unknown): Record<string, unknown> {
  return error instanceof ProviderError ? { failure: error.failure, detail: error.detail } : { error };
}
