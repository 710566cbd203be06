import { expect, test } from 'vitest'
import { identityCookies } from '../../../src/cache/cookies.ts'
import { contractOf } from '../../../src/gateway/contracts.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const targets = 'upstream: { targets: ["http://127.0.0.1:3000"] }'
const cache = 'cache: { harmlessCookies: ["wordpress_*", "theme"] }'

test.each([
  ['site', ''],
  ['open', ''],
  ['graphql', ''],
  ['plants', ''],
  ['openapi', 'document: ./config/pets.example.yaml,'],
])(
  'a login at WordPress is one behind a service with the contract %s, whatever its settings say',
  async (name, more) => {
    const read = await checkConfig(
      `services: { a: { contract: ${name}, mount: /, ${more} ${targets}, ${cache} } }`,
      {},
      '.',
    )
    if (read.kind !== 'ok') throw new Error(JSON.stringify(read))
    const [service] = read.config.services
    if (service === undefined) throw new Error('no service')
    const policy = (await contractOf(service, read.config.limits)).policyFor('GET', '/pets')
    const cookie = 'theme=dark; wordpress_logged_in_1=a; wordpress_test_cookie=1; _ga=1; x=1'
    expect(identityCookies(cookie, policy)).toMatchObject([
      { name: 'wordpress_logged_in_1', meaning: 'login' },
      { name: 'x', meaning: 'unknown' },
    ])
  },
)

test('without a table of a program only cookies that no program reads are harmless', () => {
  expect(identityCookies('_ga=1; wordpress_test_cookie=1', {})).toMatchObject([
    { name: 'wordpress_test_cookie', meaning: 'unknown' },
  ])
})
