import { callerAddresses, type CallerProgram } from './program.ts';

/** Programs that report commits, builds, deployments and errors. */
export const developmentPrograms: readonly CallerProgram[] = [
  {
    name: 'GitHub',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'Settings of the repository or organization, Webhooks, Add webhook',
        language: 'text',
        configuration: `Payload URL: <address>
Content type: application/json`,
        fixture: 'github/push',
      },
    ],
    remarks: [
      'Of events that say little, such as labels, nothing is posted; their answer is a 200 with `ignored`.',
      '`<address>?events=push,issues.opened&branches=main,release/*` chooses events and branches.',
      'It repeats nothing by itself. "Redeliver" sends a delivery again under its old id, and what was posted before is not posted twice.',
    ],
  },
  {
    name: 'GitLab',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'Settings of the project or group, Webhooks, Add new webhook',
        language: 'text',
        configuration: 'URL: <address>',
        fixture: 'gitlab/pipeline-failed',
      },
    ],
    remarks: [
      'Successes of pipelines and jobs that follow no failure are not posted.',
      '`?events=` and `&branches=` behind the address choose, as with GitHub.',
      'It switches a webhook off for a while that failed four times, and for good after 40 failures.',
      'A GitLab of your own calls private addresses only if its administrator allows it: Admin, Settings, Network, Outbound requests.',
    ],
  },
  {
    name: 'Gitea, Forgejo and Gogs',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'Settings of the repository or organization, Webhooks, Add Webhook: Gitea, Forgejo or Gogs',
        language: 'text',
        configuration: `Target URL: <address>
HTTP Method: POST
POST Content Type: application/json`,
        fixture: 'gitea/push',
      },
    ],
    remarks: [
      '`?events=` and `&branches=` behind the address choose, as with GitHub.',
      'The types Slack, Discord, Telegram and Microsoft Teams work as well; their text is the one that Gitea wrote.',
      'Private addresses have to be allowed in `app.ini`: `ALLOWED_HOST_LIST = external,private` in the section `[webhook]`.',
      'It repeats nothing by itself.',
    ],
  },
  {
    name: 'Sentry',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace:
          'Settings, Developer Settings (Custom Integrations), Create New Integration, Internal Integration',
        language: 'text',
        configuration: `Webhook URL: <address>
Alert Rule Action: on
Permissions, Issue & Event: Read
Webhooks: issue`,
        fixture: 'sentry/issue-created',
      },
    ],
    remarks: [
      'With "Alert Rule Action" the integration can be chosen as an action of alerts.',
      'The older plugin WebHooks takes the same address under "Callback URLs".',
    ],
  },
  {
    name: 'Jenkins',
    setups: [
      {
        title: 'Slack plugin',
        address: callerAddresses.jenkins,
        configurationPlace: 'a pipeline',
        language: 'groovy',
        configuration: `// klatch-token is the ID of a credential of the kind "Secret text": <token>
slackSend(
  baseUrl: '<server>/v1/webhooks/',
  tokenCredentialId: 'klatch-token',
  channel: 'any',
  color: 'good',
  message: "\${env.JOB_NAME} #\${env.BUILD_NUMBER} (<\${env.BUILD_URL}|Open>)"
)`,
        fixture: 'slack/builds/jenkins',
      },
    ],
    remarks: [
      'For all jobs the same values stand under Manage Jenkins, System, Slack.',
      'It repeats nothing; `failOnError: true` fails the build instead.',
    ],
  },
  {
    name: 'Argo CD',
    setups: [
      {
        title: 'Webhook',
        address: callerAddresses.group,
        configurationPlace: 'the ConfigMap argocd-notifications-cm, and an annotation of the application',
        language: 'yaml',
        configuration: `data:
  service.webhook.klatch: |
    url: <address>
    headers:
      - name: Content-Type
        value: application/json
  template.klatch-sync: |
    webhook:
      klatch:
        method: POST
        body: |
          {
            "title": "{{.app.metadata.name}}: sync {{.app.status.operationState.phase}}",
            "message": {{toJson .app.status.operationState.message}},
            "level": "{{.app.status.operationState.phase}}",
            "url": "{{.context.argocdUrl}}/applications/{{.app.metadata.name}}"
          }
  trigger.on-sync-failed: |
    - when: app.status.operationState != nil and app.status.operationState.phase in ['Error', 'Failed']
      send: [klatch-sync]
---
metadata:
  annotations:
    notifications.argoproj.io/subscribe.on-sync-failed.klatch: ""`,
        fixture: 'generic/templates/argo-cd',
      },
    ],
    remarks: [
      'Without `method: POST` it sends GET, which is refused with a 405.',
      'It tries three times more after a 5xx or a lost connection, not after a 4xx.',
    ],
  },
];
