import { describe, expect, test } from 'vitest'
import { shownConfig } from '../../../src/config/redacted-config.ts'
import { checkConfig, configWarnings } from '../../../src/gateway/load-config.ts'

const fileWith = (receivers: unknown, more: object = {}): string =>
  JSON.stringify({
    services: {
      blog: {
        contract: 'open',
        mount: '/',
        upstream: { targets: ['http://127.0.0.1:9'] },
        downstream: { receivers, ...more },
      },
    },
  })

const faultsOf = async (receivers: unknown): Promise<readonly string[]> => {
  const checked = await checkConfig(fileWith(receivers), {})
  return checked.kind === 'faults' ? checked.faults.map(({ path, message }) => `${path}: ${message}`) : []
}

describe('a receiver', () => {
  test.each([
    ['a webhook without a secret', { type: 'webhook', url: 'http://a/' }, 'requires secret'],
    ['a webhook without a URL', { type: 'webhook', secret: 'a' }, 'requires url'],
    ['a Varnish without a URL', { type: 'varnish' }, 'requires url'],
    ['a Fastly without a service', { type: 'fastly', secret: 'a' }, 'requires service'],
    ['a Cloudflare without a zone', { type: 'cloudflare', secret: 'a' }, 'requires zone'],
    [
      'an id that leads elsewhere',
      { type: 'fastly', secret: 'a', service: '../purge' },
      'letters and digits',
    ],
    ['another scheme', { type: 'varnish', url: 'gopher://a/' }, 'http'],
    ['another type', { type: 'nginx', url: 'http://a/' }, 'expected one of'],
  ])('is refused: %s', async (_, receiver, message) => {
    expect((await faultsOf([receiver])).join()).toContain(message)
  })

  test('is complete with the defaults, and its secrets are hidden', async () => {
    const receiver = { type: 'fastly', service: 'abc', secret: 'a token' }
    const checked = await checkConfig(fileWith([receiver], { key: 'a key' }), {})
    if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
    expect(checked.config.services[0]?.downstream).toMatchObject({
      tags: 'Surrogate-Key',
      lifetimeMs: 86_400_000,
      settleMs: 250,
      receivers: [{ url: 'https://api.fastly.com', timeoutMs: 2_000, onFailure: 'wait' }],
    })
    expect(JSON.stringify(shownConfig(checked.config))).not.toMatch(/a token|a key/)
    expect(configWarnings(checked.config)).toEqual([])
  })

  test('without any secret its tags can be guessed, which is a warning', async () => {
    const checked = await checkConfig(fileWith([{ type: 'varnish', url: 'http://127.0.0.1:6081' }]), {})
    if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
    expect(configWarnings(checked.config).map(({ path }) => path)).toEqual(['services.blog.downstream.key'])
  })
})
