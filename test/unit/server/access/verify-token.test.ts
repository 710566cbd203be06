import { createLocalJWKSet, type JWK } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../../src/clock.ts'
import {
  createJwks,
  createTokenVerifier,
  type Jwks,
  type TokenVerifier,
} from '../../../../src/server/access/verify-token.ts'
import {
  audience,
  createKey,
  type Issuer,
  type IssuerKey,
  issuerName,
  startIssuer,
} from '../../../support/issuer.ts'

let key: IssuerKey
let issuer: Issuer
beforeAll(async () => {
  key = await createKey('first')
  issuer = await startIssuer([key])
  await issuer.close()
})

const config = {
  issuer: issuerName,
  audience: [audience],
  algorithms: ['ES256'] as const,
  leewayMs: 0,
  refreshMs: 1_000,
  forward: { sub: 'x-user-id' },
}

/** Counts how often a key is looked up: once for each signature that is verified. */
const countingKeys = (): { jwks: Jwks & { version: number }; lookups: () => number } => {
  const set = createLocalJWKSet({ keys: [key.jwk as JWK & { kty: string }] })
  let count = 0
  const keys = Object.assign(
    (...values: Parameters<typeof set>) => {
      count += 1
      return set(...values)
    },
    { jwks: set.jwks },
  )
  const jwks = { keys, version: 1, refreshWhenOld: () => undefined, refreshForUnknownKey: () => undefined }
  return { jwks, lookups: () => count }
}

const verifiers = (
  clock = systemClock,
): { verifier: TokenVerifier; jwks: { version: number }; lookups: () => number } => {
  const { jwks, lookups } = countingKeys()
  return { verifier: createTokenVerifier(config, jwks, clock), jwks, lookups }
}

describe('a token', () => {
  test('is verified once, and its second verdict is synchronous', async () => {
    const { verifier, lookups } = verifiers()
    const token = await issuer.token()
    expect(await verifier.verify(token)).toMatchObject({ kind: 'verified' })
    expect(verifier.verify(token)).toMatchObject({ kind: 'verified' })
    expect(lookups()).toBe(1)
  })

  test('that many clients send at once is verified once', async () => {
    const { verifier, lookups } = verifiers()
    const token = await issuer.token()
    await Promise.all(Array.from({ length: 50 }, () => verifier.verify(token)))
    expect(lookups()).toBe(1)
  })

  test('that is refused is refused again without a verification', async () => {
    const { verifier, lookups } = verifiers()
    const forged = issuer.forged({ alg: 'ES256', kid: 'first' })
    expect(await verifier.verify(forged)).toEqual({ kind: 'refused', reason: 'signature' })
    expect(verifier.verify(forged)).toEqual({ kind: 'refused', reason: 'signature' })
    expect(lookups()).toBe(1)
  })

  test('is verified again when the keys have changed', async () => {
    const { verifier, jwks, lookups } = verifiers()
    const token = await issuer.token()
    await verifier.verify(token)
    jwks.version += 1
    await verifier.verify(token)
    expect(lookups()).toBe(2)
  })

  test('is refused at the moment at which it expires, also when it was verified before', async () => {
    let offsetMs = 0
    const clock = { ...systemClock, now: () => Date.now() + offsetMs }
    const { verifier } = verifiers(clock)
    const token = await issuer.token({ expiresIn: 60 })
    expect(await verifier.verify(token)).toMatchObject({ kind: 'verified' })
    offsetMs = 61_000
    expect(await verifier.verify(token)).toEqual({ kind: 'refused', reason: 'expired' })
  })

  test('that is not valid yet is admitted later', async () => {
    let offsetMs = 0
    const clock = { ...systemClock, now: () => Date.now() + offsetMs }
    const { verifier } = verifiers(clock)
    const token = await issuer.token({ claims: { nbf: Math.floor(Date.now() / 1000) + 60 } })
    expect(await verifier.verify(token)).toEqual({ kind: 'refused', reason: 'not-yet-valid' })
    offsetMs = 61_000
    expect(await verifier.verify(token)).toMatchObject({ kind: 'verified' })
  })

  test('of a flood of bad ones displaces no good one, and what is remembered is bounded', async () => {
    const { verifier, lookups } = verifiers()
    const token = await issuer.token()
    await verifier.verify(token)
    const forged = (index: number) => issuer.forged({ alg: 'ES256', kid: 'first' }, { jti: `${index}` })
    for (let index = 0; index < 4_200; index += 1) await verifier.verify(forged(index))
    const before = lookups()
    expect(verifier.verify(token)).toMatchObject({ kind: 'verified' })
    expect(lookups()).toBe(before)
    // The first ones of the flood are forgotten, the last ones are not.
    await verifier.verify(forged(0))
    await verifier.verify(forged(4_199))
    expect(lookups()).toBe(before + 1)
  })

  test.each([
    ['numbers and truth', { sub: 7 }, '7'],
    ['a list', { sub: ['a', 'b', 3] }, 'a,b,3'],
    ['spaces within', { sub: 'Ann Lee' }, 'Ann Lee'],
    ['no text', { sub: '' }, undefined],
  ])('gives %s as a header', async (_description, claims, header) => {
    const verdict = await verifiers().verifier.verify(await issuer.token({ claims }))
    expect(verdict.kind === 'verified' && verdict.identity.headers.get('x-user-id')).toBe(header)
  })

  test.each([
    ' ann',
    'ann ',
    'ann\n',
    'a\u0085b',
    'zoë',
    'a'.repeat(1_025),
    null,
    { a: 1 },
    [['a']],
    ['a', 'b,c'],
  ])('with the claim %j is refused, since the claim cannot be a header', async (sub) => {
    const verdict = await verifiers().verifier.verify(await issuer.token({ claims: { sub } }))
    expect(verdict).toEqual({ kind: 'refused', reason: 'claim' })
  })

  test('gives at most 32 short claims to count by', async () => {
    const claims = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`c${index}`, 'x']))
    const verdict = await verifiers().verifier.verify(
      await issuer.token({ claims: { long: 'x'.repeat(300), ...claims } }),
    )
    const counted = verdict.kind === 'verified' ? verdict.identity.claims : new Map()
    expect(counted.size).toBeLessThanOrEqual(32)
    expect(counted.has('long')).toBe(false)
    expect(counted.get('sub')).toBe('ann')
  })
})

test('while the issuer fails, no request waits for a fetch of keys that stay in use anyway', async () => {
  const slow = await startIssuer([key])
  let nowMs = 0
  const results: string[] = []
  const jwks = createJwks({
    source: slow.url,
    refreshMs: 1_000,
    clock: { monotonic: () => nowMs },
    report: (result) => results.push(result),
  })
  try {
    await expect.poll(() => results).toEqual(['ok'])
    slow.server.script = (_, wire) => wire.reset()
    nowMs += 2_500
    // After a pause the keys may have been removed meanwhile.
    await jwks.refreshWhenOld()
    expect(results).toEqual(['ok', 'unreachable'])
    slow.server.script = () => new Promise(() => {})
    for (const pauseMs of [1_000, 5_000]) {
      nowMs += pauseMs
      expect(jwks.refreshWhenOld()).toBeUndefined()
    }
    await slow.server.until(() => slow.server.received.length === 3)
    expect(jwks.refreshWhenOld()).toBeUndefined()
    // Another long pause.
    nowMs += 20_000
    expect(jwks.refreshWhenOld()).toBeDefined()
  } finally {
    await slow.close()
  }
})

describe('keys rotate', () => {
  test('a token without kid is verified by whichever key of its kind fits', async () => {
    const [one, two, other] = await Promise.all(['a', 'b', 'c'].map((kid) => createKey(kid)))
    if (one === undefined || two === undefined || other === undefined) throw new Error('no keys')
    for (const named of ['none', 'all', 'same'] as const) {
      const listed = [one, two].map(({ jwk: { kid, ...jwk } }) =>
        named === 'none' ? jwk : { ...jwk, kid: named === 'same' ? 'x' : kid },
      )
      const jwks = createJwks({
        source: `\ufeff${JSON.stringify({ keys: listed })}`,
        refreshMs: 1,
        clock: systemClock,
        report: () => {},
      })
      const config = {
        issuer: issuerName,
        audience: [audience],
        algorithms: ['ES256' as const],
        leewayMs: 0,
        refreshMs: 1,
        forward: {},
      }
      const verifier = createTokenVerifier(config, jwks, systemClock)
      const header = named === 'same' ? { kid: 'x' } : { kid: undefined }
      for (const signer of [one, two])
        expect(await verifier.verify(await issuer.token({ header }, signer))).toMatchObject({
          kind: 'verified',
        })
      expect(await verifier.verify(await issuer.token({ header }, other))).toEqual({
        kind: 'refused',
        reason: 'signature',
      })
    }
  })
})
