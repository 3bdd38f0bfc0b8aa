import { callerAddresses, type CallerProgram } from './program.ts';

/** Programs that monitor machines and services, and report failures. */
export const monitoringPrograms: readonly CallerProgram[] = [
  {
    name: 'Alertmanager',
    setups: [
      {
        title: 'webhook_configs (recommended)',
        address: callerAddresses.group,
        configurationPlace: 'alertmanager.yml',
        language: 'yaml',
        configuration: `route:
  receiver: klatch
receivers:
  - name: klatch
    webhook_configs:
      - url: <address>`,
        fixture: 'alertmanager/several-of-one-rule',
      },
      {
        title: 'slack_configs',
        address: callerAddresses.slack,
        configurationPlace: 'alertmanager.yml',
        language: 'yaml',
        configuration: `receivers:
  - name: klatch
    slack_configs:
      - api_url: <address>/slack
        send_resolved: true`,
        fixture: 'slack/alerts/alertmanager-defaults',
      },
      {
        title: 'msteamsv2_configs',
        address: callerAddresses.teams,
        configurationPlace: 'alertmanager.yml, from version 0.28 on',
        language: 'yaml',
        configuration: `receivers:
  - name: klatch
    msteamsv2_configs:
      - webhook_url: <address>/teams`,
        fixture: 'adaptive-card/alertmanager-msteamsv2',
      },
    ],
    remarks: [
      'It repeats after a 5xx and a lost connection, until the next interval of the group. It does not repeat after a 4xx.',
      '`slack_configs` tells of resolved alerts only with `send_resolved: true`; the other two do so by default.',
      'When a post fails, it writes the URL into its log, and the token with it.',
    ],
  },
  {
    name: 'Grafana',
    setups: [
      {
        title: 'Webhook (recommended)',
        address: callerAddresses.group,
        configurationPlace: 'Alerting, Contact points; or a file in provisioning/alerting',
        language: 'yaml',
        configuration: `apiVersion: 1
contactPoints:
  - orgId: 1
    name: Klatch
    receivers:
      - uid: klatch
        type: webhook
        settings:
          url: <address>
          httpMethod: POST`,
        fixture: 'grafana/version-11-mixed',
      },
      {
        title: 'Slack',
        address: callerAddresses.slack,
        configurationPlace: 'Alerting, Contact points; or a file in provisioning/alerting',
        language: 'yaml',
        configuration: `apiVersion: 1
contactPoints:
  - orgId: 1
    name: Klatch
    receivers:
      - uid: klatch-slack
        type: slack
        settings:
          url: <address>/slack`,
        fixture: 'slack/alerts/grafana-resolved',
      },
    ],
    remarks: [
      'A title and a message that you wrote in Grafana are shown; its default ones are replaced by the alerts themselves.',
      'A notification that failed is sent again at the next interval of its group.',
      'Alerts of version 8 and older, one rule for each request, are read too.',
    ],
  },
  {
    name: 'Uptime Kuma',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'Settings, Notifications, Setup Notification',
        language: 'text',
        configuration: `Notification Type: Webhook
Post URL: <address>
Request Body: Preset - application/json`,
        fixture: 'uptime-kuma/down',
      },
    ],
    remarks: [
      'It does not repeat a post that failed.',
      'With "Resend Notification if Down X times consecutively" a monitor tells of a lasting failure again.',
      'A request body of your own is read too, if it is JSON with `message` or `text`.',
    ],
  },
  {
    name: 'Healthchecks',
    setups: [
      {
        title: 'Slack',
        address: callerAddresses.slack,
        configurationPlace: 'Integrations, Slack, Add Integration',
        language: 'text',
        configuration: 'Webhook URL: <address>/slack',
        fixture: 'slack/alerts/healthchecks-slack',
      },
    ],
    remarks: [
      'It tries three times. A 404, which an unknown token is answered with, switches the integration off for good.',
      'An installation of your own calls private addresses only with `INTEGRATIONS_ALLOW_PRIVATE_IPS=True`.',
    ],
  },
  {
    name: 'Zabbix',
    setups: [
      {
        title: 'Media type Discord',
        address: callerAddresses.discord,
        configurationPlace: 'Users, the user, Media, Add; the media type is enabled in Alerts, Media types',
        language: 'text',
        configuration: `Type: Discord
Send to: <address>/discord`,
        fixture: 'discord/zabbix',
      },
    ],
    remarks: [
      'The global macro `{$ZABBIX.URL}` has to be set: the media type makes the links of it.',
      'It repeats as often as the media type says under "Attempts".',
      'Its media types for Slack, Telegram, Mattermost and Rocket.Chat need interfaces of these products that Klatch does not have.',
    ],
  },
  {
    name: 'netdata',
    setups: [
      {
        title: 'Slack',
        address: callerAddresses.slack,
        configurationPlace: 'health_alarm_notify.conf (`sudo ./edit-config health_alarm_notify.conf` in /etc/netdata)',
        language: 'sh',
        configuration: `SEND_SLACK="YES"
SLACK_WEBHOOK_URL="<address>/slack"
DEFAULT_RECIPIENT_SLACK="#"`,
        fixture: 'slack/alerts/netdata-slack',
      },
    ],
    remarks: [
      'The recipient `#` means no channel; without a recipient nothing is sent.',
      'It repeats nothing that failed. `alarm-notify.sh test` in its folder of plugins sends a test.',
    ],
  },
  {
    name: 'ElastAlert 2',
    setups: [
      {
        title: 'slack (recommended)',
        address: callerAddresses.slack,
        configurationPlace: 'the file of a rule',
        language: 'yaml',
        configuration: `alert:
  - slack
slack_webhook_url: "<address>/slack"`,
        fixture: 'slack/senders/elastalert',
      },
      {
        title: 'googlechat',
        address: callerAddresses.googleChat,
        configurationPlace: 'the file of a rule',
        language: 'yaml',
        configuration: `alert:
  - googlechat
googlechat_webhook_url: "<address>/google-chat"
googlechat_format: card`,
        fixture: 'google-chat/elastalert',
      },
    ],
    remarks: ['It repeats an alert that failed for as long as its `alert_time_limit` says.'],
  },
  {
    name: 'Proxmox VE',
    setups: [
      {
        title: 'Gotify',
        address: callerAddresses.gotify,
        configurationPlace: 'Datacenter, Notifications; or a shell of a node, from version 8.1 on',
        language: 'sh',
        configuration: `pvesh create /cluster/notifications/endpoints/gotify --name klatch --server <server> --token <token>
pvesh create /cluster/notifications/matchers --name klatch --target klatch`,
        fixture: 'gotify/proxmox',
      },
    ],
    remarks: [
      'The matcher sends all notifications here; `match-severity` and `match-field` choose some.',
      'Notifications of errors have a high priority, which is shown as 🟠.',
    ],
  },
];
