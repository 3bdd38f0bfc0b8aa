import type { Config } from '../config/config.ts';
import { DEFAULT_EMAIL_TEMPLATE, readEmailTemplate } from '../config/email-template.ts';
import { ConfigError } from '../config/problem.ts';
import type { ActivationProviderName } from '../model/proof-address.ts';
import { EmailCodeProvider, parseSender } from './email.ts';
import { PhoneCodeGateway } from './phone-code-gateway.ts';
import type { CodeProvider } from './provider.ts';

/** Creates each provider; null: the provider is not configured. */
const FACTORIES: Readonly<Record<ActivationProviderName, (config: Config, userAgent: string) => CodeProvider | null>> =
  {
    gate: ({ activation }, userAgent) => (activation === null ? null : new PhoneCodeGateway(activation, { userAgent })),
    email: createEmailProvider,
  };

/**
 * The configured providers, in the configuration's order. Throws ConfigError for a sender or an e-mail template that
 * cannot be used. The template was checked with the configuration, and may have changed since.
 */
export function createProviders(config: Config, userAgent: string): readonly CodeProvider[] {
  const providers = config.activationProviders.map((name) => FACTORIES[name](config, userAgent));
  return providers.filter((each) => each !== null);
}

function createEmailProvider({ smtp, projectName, file }: Config): CodeProvider | null {
  if (smtp === null) return null;
  const refuse = (key: string, sentence: string): never => {
    throw new ConfigError([{ file, line: null, key: `services.smtp.${key}`, sentence }]);
  };
  if (parseSender(smtp.from) === null) refuse('from', 'is not one e-mail address, with or without a name before it');
  const emailTemplate =
    smtp.emailTemplatePath === null ? DEFAULT_EMAIL_TEMPLATE : readEmailTemplate(smtp.emailTemplatePath);
  if (typeof emailTemplate === 'string') return refuse('template', emailTemplate);
  return new EmailCodeProvider(smtp, { emailTemplate, projectName });
}
