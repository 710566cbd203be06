import { describe, expect, test } from 'vitest'
import { checkConfig } from '../../../src/gateway/load-config.ts'

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references as the file spells them */

const open = (more: string): string =>
  `services: { a: { contract: open, mount: /, upstream: { targets: ["http://a"] }, ${more} } }`
const site = (more: string): string => `services: { a: { contract: site, ${more} } }`
const up = (more: string): string => site(`upstream: { ${more} }`)
const jwt = (more: string): string =>
  open(`access: { jwt: { jwks: "https://a/b", issuer: a, audience: b, ${more} } }`)

/** One mistake each, over all sections: what the file says, and the one fault with its position and suggestion. */
const rows: readonly (readonly [mistake: string, text: string, fault: string])[] = [
  [
    'an indentation by a tab',
    'listen:\n\tport: 80\n',
    '2:1 : not YAML: lines are indented with spaces, not with tabs',
  ],
  [
    'several lines indented by tabs',
    'services:\n  a:\n\tcontract: open\n\tmount: /\n',
    '3:1 : not YAML: lines are indented with spaces, not with tabs',
  ],
  [
    'an indentation that differs',
    'listen:\n  port: 80\n host: a\n',
    '3:1 : not YAML: this line is not indented as the lines of its section',
  ],
  [
    'a key that is indented further than the key before it',
    'listen:\n  port: 80\n   host: a\n',
    '2:9 : not YAML: a value stands where keys are expected: the next line is indented too far, a list entry ("- ") is among keys, or this value has ": " and must be in quotes',
  ],
  [
    'a key of a list that is indented less than the others',
    'rateLimits:\n  - name: a\n    max: 1\n   service: b\n',
    '4:1 : not YAML: this line is not indented as the lines of its section',
  ],
  [
    'a host with a port',
    'listen: { host: "localhost:8080" }',
    '1:17 listen.host: expected a host name or an IP address, without a port',
  ],
  [
    'a key without a space behind its colon',
    'listen:{ port: 80 }',
    '1:1 listen:{ port: unknown key; the colon behind a key needs a space after it',
  ],
  [
    'a key without a colon',
    'listen\n  port: 80',
    '1:1 : not YAML: a key must be followed by a colon and a space on the same line',
  ],
  [
    'a bracket that is not closed',
    'trustedProxies: [10.0.0.0/8\nworkers: 1',
    '2:1 : not YAML: a closing bracket is missing before this line',
  ],
  [
    'a quote that is not closed',
    'publicUrl: "http://a\nworkers: 1',
    '2:11 : not YAML: a closing quote or bracket is missing',
  ],
  [
    'an alias without an anchor',
    'listen: *nothing',
    '1:9 : not YAML: "*" begins an alias: put the value in quotes, or define the anchor before it',
  ],
  [
    'aliases that expand to gigabytes',
    `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]`,
    '1:1 : not YAML: its aliases expand to too much',
  ],
  [
    'an origin * without quotes',
    'cors: { origins: [*] }',
    '1:19 : not YAML: "*" begins an alias: put the value in quotes',
  ],
  [
    'a wildcard host without quotes',
    open('hosts: [*.shop.example]'),
    '1:89 : not YAML: "*" begins an alias: put the value in quotes, or define the anchor before it',
  ],
  [
    'a value that begins with %',
    'publicUrl: %x',
    '1:12 : not YAML: a value that begins with this character must be in quotes',
  ],
  [
    'a value that begins with @',
    'publicUrl: @x',
    '1:12 : not YAML: a value that begins with this character must be in quotes',
  ],
  [
    'a value that begins with a backtick',
    'publicUrl: `x`',
    '1:12 : not YAML: a value that begins with this character must be in quotes',
  ],
  [
    'a reference without quotes in braces',
    'listen: { port: ${PORT:-8081} }',
    '1:18 : not YAML: inside braces write "${PORT:-8081}", in quotes',
  ],
  [
    'a reference without quotes in brackets',
    'trustedProxies: [${NETS}]',
    '1:19 : not YAML: inside braces write "${NETS}", in quotes',
  ],
  [
    'a reference within the default of another one',
    'publicUrl: "${A:-${B:-http://a}}"',
    '1:12 publicUrl: the default of A contains another reference, which is not possible',
  ],
  [
    'a reference within the default of a target',
    up('targets: ["${A:-http://${B:-x}:1}"]'),
    '1:56 services.a.upstream.targets[0]: the default of A contains another reference, which is not possible',
  ],
  [
    'a variable that is not set',
    'admin: { token: "${NONE}" }',
    '1:17 admin.token: the environment variable NONE is not set, and there is no default (${NONE:-default})',
  ],
  [
    'a variable name with a hyphen',
    'admin: { token: "${NO-NE}" }',
    '1:17 admin.token: expected a variable name of letters, digits and underscores between the braces',
  ],
  [
    'a reference without its closing brace',
    'admin: { token: "${NONE" }',
    '1:17 admin.token: a reference to the environment has no closing brace: ${NAME}',
  ],
  [
    'the path of a certificate in place of its content',
    'listen: { tls: { cert: /x.crt, key: /x.key } }',
    '1:24 listen.tls.cert: a file is written as file:/x.crt',
  ],
  [
    'a certificate without its key',
    'listen: { tls: { cert: abc } }',
    '1:24 listen.tls.cert: TLS needs both cert and key',
  ],
  [
    'HTTP/2 without TLS',
    'listen: { http2: true }',
    '1:18 listen.http2: requires listen.tls: HTTP/2 is negotiated in the TLS handshake',
  ],
  [
    'a version of TLS that is too old',
    'listen: { tls: { minVersion: 1.1 } }',
    '1:30 listen.tls.minVersion: expected "1.2" or "1.3", in quotes',
  ],
  [
    'a version of TLS as a number',
    'listen: { tls: { minVersion: 1.2 } }',
    '1:30 listen.tls.minVersion: expected "1.2" or "1.3", in quotes',
  ],
  [
    'a certificate without hosts',
    'listen: { tls: { certificates: [{ cert: a, key: b }] } }',
    '1:33 listen.tls.certificates[0].hosts: is required: expected a list',
  ],
  [
    'a token that is a number',
    'admin: { token: 12345 }',
    '1:17 admin.token: expected a text, found a number',
  ],
  [
    'a file in place of a value that is no secret',
    'publicUrl: "file:/etc/hostname"',
    '1:12 publicUrl: only secrets are read from files: tokens, keys and certificates, marked "Secret" in docs/settings.md',
  ],
  [
    'a duration that is a number',
    'drain: { delay: 5 }',
    '1:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d, found a number <5s>',
  ],
  [
    'a duration with a space',
    'drain: { delay: 5 s }',
    '1:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d <5s>',
  ],
  [
    'a duration with another unit',
    'drain: { delay: 5sec }',
    '1:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d <5s>',
  ],
  [
    'a duration with a fraction',
    'drain: { delay: 1.5s }',
    '1:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d <1500ms>',
  ],
  [
    'a negative duration',
    'drain: { delay: -5s }',
    '1:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d',
  ],
  [
    'a duration of two parts',
    'drain: { delay: 1m30s }',
    '1:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d <90s>',
  ],
  [
    'a duration longer than a timer',
    'drain: { timeout: 30d }',
    '1:19 drain.timeout: expected at most 12d: the longest time of a timer',
  ],
  [
    'a duration with a capital unit',
    'drain: { timeout: 5M }',
    '1:19 drain.timeout: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d <5m>',
  ],
  [
    'a size with a decimal unit',
    'cache: { maxBytes: 256MB }',
    '1:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB <256MiB>',
  ],
  [
    'a size with a short unit',
    'cache: { maxBytes: 256M }',
    '1:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB <256MiB>',
  ],
  [
    'a size with a unit in lower case',
    'cache: { maxBytes: 256mib }',
    '1:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB <256MiB>',
  ],
  [
    'a size with a fraction',
    'cache: { maxBytes: 1.5GiB }',
    '1:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB <1536MiB>',
  ],
  [
    'a negative size',
    'cache: { maxBytes: -1 }',
    '1:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB',
  ],
  [
    'a size with a space',
    'cache: { maxBytes: 256 MiB }',
    '1:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB <256MiB>',
  ],
  [
    'a size in percent',
    'cache: { maxBytes: 50% }',
    '1:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB',
  ],
  [
    'a port by name',
    'listen: { port: http }',
    '1:17 listen.port: expected a whole number from 0 to 65535, found a text',
  ],
  ['a negative port', 'listen: { port: -1 }', '1:17 listen.port: expected a whole number from 0 to 65535'],
  [
    'a port with a fraction',
    'listen: { port: 80.5 }',
    '1:17 listen.port: expected a whole number from 0 to 65535, found a number with a fraction',
  ],
  [
    'an address and a port as one text',
    'listen: "0.0.0.0:8080"',
    '1:9 listen: expected a section with keys and values, found a text; its keys are: host, port, http2, tls',
  ],
  [
    'a port in place of its section',
    'listen: 8080',
    '1:9 listen: expected a section with keys and values, found a number; its keys are: host, port, http2, tls',
  ],
  [
    'a flag that says yes',
    'listen: { http2: yes }',
    '1:18 listen.http2: expected true or false, found a text',
  ],
  [
    'a flag that is a number',
    'reload: { watch: 1 }',
    '1:18 reload.watch: expected true or false, found a number',
  ],
  [
    'a number of workers in words',
    'workers: auto',
    '1:10 workers: expected a whole number from 0 to 256, found a text; write 0 for one for each core',
  ],
  ['more workers than allowed', 'workers: 257', '1:10 workers: expected a whole number from 0 to 256'],
  [
    'a URL in place of a host',
    'listen: { host: "http://a" }',
    '1:17 listen.host: expected a host name or an IP address, without a port',
  ],
  [
    'a proxy by name',
    'trustedProxies: [proxy.example]',
    '1:18 trustedProxies[0]: expected an IP address or a CIDR block, e.g. 10.0.0.0/8',
  ],
  [
    'a network with too long a prefix',
    'trustedProxies: [10.0.0.0/33]',
    '1:18 trustedProxies[0]: the prefix length must be 0 to 32',
  ],
  [
    'a range of addresses',
    'trustedProxies: ["10.0.0.1-10.0.0.9"]',
    '1:18 trustedProxies[0]: expected an IP address or a CIDR block, e.g. 10.0.0.0/8',
  ],
  [
    'a target without its scheme',
    up('targets: [10.0.0.7:8080]'),
    '1:56 services.a.upstream.targets[0]: expected an origin, e.g. http://10.0.0.7:8080 <http://10.0.0.7:8080>',
  ],
  [
    'a target by name without its scheme',
    up('targets: [localhost:8080]'),
    '1:56 services.a.upstream.targets[0]: expected an origin, e.g. http://10.0.0.7:8080 <http://localhost:8080>',
  ],
  [
    'a target that is no list',
    up('targets: http://a'),
    '1:55 services.a.upstream.targets: expected a list, found a text; write ["http://127.0.0.1:3000"]',
  ],
  ['the key target', up('target: http://a'), '1:46 services.a.upstream.target: unknown key <targets>'],
  [
    'the key url',
    up('url: http://a'),
    '1:46 services.a.upstream.url: unknown key: write targets: ["http://127.0.0.1:3000"]',
  ],
  [
    'a target with an impossible port',
    up('targets: ["http://a:99999"]'),
    '1:56 services.a.upstream.targets[0]: expected an origin, e.g. http://10.0.0.7:8080',
  ],
  [
    'a target with a space',
    up('targets: ["http://a b"]'),
    '1:56 services.a.upstream.targets[0]: expected an origin, e.g. http://10.0.0.7:8080',
  ],
  [
    'a target with another scheme',
    up('targets: ["ws://a"]'),
    '1:56 services.a.upstream.targets[0]: the scheme must be http or https',
  ],
  [
    'an upstream that is a text',
    site('upstream: http://a'),
    '1:44 services.a.upstream: expected a section with keys and values, found a text; write { targets: ["http://127.0.0.1:3000"] }',
  ],
  [
    'a base path without its slash',
    up('basePath: wp-json'),
    '1:56 services.a.upstream.basePath: the path must start with "/"',
  ],
  [
    'a base path with a query',
    up('basePath: "/a?b"'),
    "1:56 services.a.upstream.basePath: the path has a character that must be written another way (only letters, digits and -._~!$&'()*+,;=:@)",
  ],
  ['a mount without its slash', site('mount: a'), '1:41 services.a.mount: the path must start with "/"'],
  [
    'a mount with a wildcard',
    site('mount: /a/*'),
    '1:41 services.a.mount: a mount has no wildcard: it covers all paths that begin with it',
  ],
  [
    'a service without a contract',
    'services: { a: { mount: / } }',
    '1:13 services.a.contract: is required: expected one of: plants, site, openapi, graphql, open',
  ],
  [
    'a contract that does not exist',
    'services: { a: { contract: rest } }',
    '1:28 services.a.contract: expected one of: plants, site, openapi, graphql, open <open>',
  ],
  [
    'services as a list',
    'services: [{ contract: site }]',
    '1:11 services: expected a section with keys and values, found a list; write NAME: { contract: open, mount: /, upstream: ... }',
  ],
  [
    'a service without content',
    'services: { a: }',
    '1:16 services.a: is empty: leave the key out, or give it a value',
  ],
  [
    'a service that is a text',
    'services: { a: open }',
    '1:16 services.a: expected a section with keys and values, found a text',
  ],
  [
    'an open service without a mount',
    'services: { a: { contract: open, upstream: { targets: ["http://a"] } } }',
    '1:13 services.a.mount: is required: expected a path',
  ],
  [
    'an open service without an upstream',
    'services: { a: { contract: open, mount: / } }',
    '1:13 services.a.upstream: is required: expected a section with keys and values',
  ],
  [
    'a service name with an underscore',
    'services: { my_api: { contract: site } }',
    '1:13 services.my_api: a service name is 1 to 32 lower-case letters, digits and hyphens',
  ],
  [
    'a service name that is too long',
    `services: { ${'a'.repeat(33)}: { contract: site } }`,
    '1:13 services.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: a service name is 1 to 32 lower-case letters, digits and hyphens',
  ],
  ['a section in the singular', 'service: {}', '1:1 service: unknown key <services>'],
  [
    'a section that does not exist',
    'caching: {}',
    '1:1 caching: unknown key; the keys here are: listen, limits, cors, overload, rateLimits, rateLimitKeys, reload, admin, publicUrl, workers, trustedProxies, log, tracing, metrics, cache, drain, services',
  ],
  [
    'a key of another contract',
    open('names: same'),
    '1:81 services.a.names: unknown key; the keys here are: contract, hosts, publicUrl, responseHeaders, cors, compress, changes, downstream, mount, access, websockets, errorPage, upstream, cache',
  ],
  [
    'a rule that is a text',
    open('cache: { rules: ["GET /a 60s"] }'),
    '1:98 services.a.cache.rules[0]: expected a section with keys and values, found a text; its keys are: match, ttl, staleWhileRevalidate, staleIfError, negativeTtl, scope, override',
  ],
  [
    'rules that are no list',
    open('cache: { rules: { match: GET /a, ttl: 1s } }'),
    '1:97 services.a.cache.rules: expected a list, found a section; begin each entry with "-"',
  ],
  [
    'a rule with a method in lower case',
    open('cache: { rules: [{ match: get /a, ttl: 1s }] }'),
    '1:107 services.a.cache.rules[0].match: methods are in capitals: write "GET /a"',
  ],
  [
    'a rule with a regular expression',
    open('cache: { rules: [{ match: "GET ^/a$", ttl: 1s }] }'),
    '1:107 services.a.cache.rules[0].match: the path must start with "/" and is relative to the mount of the service',
  ],
  [
    'a rule with ** within a segment',
    open('cache: { rules: [{ match: "GET /a**", ttl: 1s }] }'),
    '1:107 services.a.cache.rules[0].match: "**" must be a whole segment',
  ],
  [
    'a ttl without its unit',
    open('cache: { rules: [{ match: "GET /a", ttl: 60 }] }'),
    '1:122 services.a.cache.rules[0].ttl: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d, found a number <60s>',
  ],
  [
    'a ttl without its unit, as a text',
    open('cache: { rules: [{ match: "GET /a", ttl: "90" }] }'),
    '1:122 services.a.cache.rules[0].ttl: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d <90s>',
  ],
  [
    'a timeout that may be of milliseconds',
    'drain: { timeout: 30000 }',
    '1:19 drain.timeout: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d, found a number',
  ],
  [
    'a rule without its method',
    open('cache: { rules: [{ match: "/**", ttl: 1s }] }'),
    '1:107 services.a.cache.rules[0].match: expected methods and a path: write "GET /**"',
  ],
  [
    'a misspelt key with a file',
    'listen: { tls: { crt: "file:/etc/hostname" } }',
    '1:18 listen.tls.crt: unknown key <cert>',
  ],
  [
    'a misspelt section with a file in it',
    'listn: { tls: { cert: "file:/etc/hostname" } }',
    '1:1 listn: unknown key <listen>',
  ],
  [
    'names as other programs call them',
    site('names: wp'),
    '1:41 services.a.names: expected one of: wordpress, same <wordpress>',
  ],
  [
    'a scope that does not exist',
    open('cache: { rules: [{ match: "GET /a", ttl: 1s, scope: private }] }'),
    '1:133 services.a.cache.rules[0].scope: expected one of: public, credential',
  ],
  [
    'a cache profile that does not exist',
    open('cache: { profile: rfc }'),
    '1:99 services.a.cache.profile: expected one of: safe, rfc-shared-cache',
  ],
  [
    'a cookie with its value',
    open('cache: { harmlessCookies: ["a=b"] }'),
    '1:108 services.a.cache.harmlessCookies[0]: expected the name of a cookie, e.g. PHPSESSID; "*" is allowed at the end',
  ],
  [
    'a harmless write that reads',
    open('cache: { harmlessWrites: [GET /a] }'),
    '1:107 services.a.cache.harmlessWrites[0]: expected methods that write, e.g. POST',
  ],
  [
    'a harmless write with all methods',
    open('cache: { harmlessWrites: ["* /a"] }'),
    '1:107 services.a.cache.harmlessWrites[0]: expected methods that write, e.g. POST',
  ],
  [
    'a harmless write with a parameter twice',
    open('cache: { harmlessWrites: ["POST /?a=1&a=2"] }'),
    '1:107 services.a.cache.harmlessWrites[0]: expected parameters as name=value behind one "?", each once, e.g. "POST /?wc-ajax=*"',
  ],
  [
    'a harmless write with an encoded parameter',
    open('cache: { harmlessWrites: ["POST /?a%5B%5D=1"] }'),
    '1:107 services.a.cache.harmlessWrites[0]: expected parameters as name=value behind one "?", each once, e.g. "POST /?wc-ajax=*"',
  ],
  [
    'a header name with a colon',
    open('cache: { harmlessFields: ["a:b"] }'),
    '1:107 services.a.cache.harmlessFields[0]: expected the name of a request header, e.g. X-User-Agent-Class',
  ],
  [
    'a host with a port',
    open('hosts: ["a.example:80"]'),
    '1:89 services.a.hosts[0]: a host has no port: listen.port is the port of all hosts',
  ],
  [
    'a URL among the hosts',
    open('hosts: ["https://a.example"]'),
    '1:89 services.a.hosts[0]: expected a host name, e.g. blog.example or *.shop.example',
  ],
  [
    'a host that is no list',
    open('hosts: a.example'),
    '1:88 services.a.hosts: expected a list, found a text; put it in brackets',
  ],
  [
    'a host with an umlaut',
    open('hosts: [bücher.example]'),
    '1:89 services.a.hosts[0]: expected the ASCII form of the name: xn--bcher-kva.example',
  ],
  [
    'a host listed twice',
    open('hosts: [a.example, A.example]'),
    '1:100 services.a.hosts[1]: a.example is listed twice',
  ],
  [
    'a wildcard within a host',
    open('hosts: ["a.*.example"]'),
    '1:89 services.a.hosts[0]: expected at most one wildcard, as the first label: *.shop.example',
  ],
  [
    'a public URL with a query',
    open('publicUrl: "https://a?b"'),
    '1:92 services.a.publicUrl: the URL must not have a query or a fragment',
  ],
  [
    'a response header with a space in its name',
    open('responseHeaders: { set: { "X Y": a } }'),
    '1:107 services.a.responseHeaders.set.X Y: expected the name of a header, e.g. X-Request-Id',
  ],
  [
    'a response header whose value is a number',
    open('responseHeaders: { set: { X-Y: 1 } }'),
    '1:112 services.a.responseHeaders.set.X-Y: expected a text, found a number',
  ],
  [
    'a response header that only the gateway writes',
    open('responseHeaders: { remove: [Content-Length] }'),
    '1:109 services.a.responseHeaders.remove[0]: this header frames the message or belongs to the connection: only the gateway writes it',
  ],
  [
    'response headers as a list',
    open('responseHeaders: { set: [a] }'),
    '1:105 services.a.responseHeaders.set: expected a section with keys and values, found a list',
  ],
  [
    'no attempts',
    up('retry: { attempts: 0 }'),
    '1:65 services.a.upstream.retry.attempts: expected a whole number from 1 to 10',
  ],
  [
    'a share in percent',
    up('retry: { budget: 20% }'),
    '1:63 services.a.upstream.retry.budget: expected a share from 0 to 1, e.g. 0.2, found a text',
  ],
  [
    'no concurrent requests',
    up('maxConcurrent: 0'),
    '1:61 services.a.upstream.maxConcurrent: expected a whole number from 1 to 65536',
  ],
  [
    'a share above 1',
    up('clientShare: 2'),
    '1:59 services.a.upstream.clientShare: expected a share from 0 to 1, e.g. 0.2',
  ],
  [
    'a breaker without probes',
    up('breaker: { probes: 0 }'),
    '1:65 services.a.upstream.breaker.probes: expected a whole number from 1 to 1000',
  ],
  [
    'a negative share',
    up('eject: { maxShare: -0.1 }'),
    '1:65 services.a.upstream.eject.maxShare: expected a share from 0 to 1, e.g. 0.2',
  ],
  [
    'a health path without its slash',
    up('health: { path: up }'),
    '1:62 services.a.upstream.health.path: expected a path that starts with "/", or an empty text for "off"',
  ],
  [
    'a URL in place of a health path',
    up('health: { path: "http://a/up" }'),
    '1:62 services.a.upstream.health.path: expected a path that starts with "/", or an empty text for "off"',
  ],
  [
    'a health check that is a text',
    up('health: /up'),
    '1:54 services.a.upstream.health: expected a section with keys and values, found a text; write { path: /health }',
  ],
  [
    'a class of statuses',
    up('health: { path: /up, expect: 2xx }'),
    '1:75 services.a.upstream.health.expect: expected statuses from 200 to 599, e.g. 200-399, or 200,204, or 200-299,401',
  ],
  [
    'the path of a CA in place of its content',
    up('tls: { ca: /etc/ca.pem }'),
    '1:57 services.a.upstream.tls.ca: a file is written as file:/etc/ca.pem',
  ],
  [
    'a client certificate without its key',
    up('tls: { cert: abc }'),
    '1:59 services.a.upstream.tls.cert: a client certificate needs both cert and key',
  ],
  [
    'a host header as a text',
    up('host: blog.example'),
    '1:52 services.a.upstream.host: expected one of: target, preserve',
  ],
  [
    'a log level of another program',
    'log: { level: warning }',
    '1:15 log.level: expected one of: trace, debug, info, warn, error, fatal, silent <warn>',
  ],
  [
    'a log level in capitals',
    'log: { level: INFO }',
    '1:15 log.level: expected one of: trace, debug, info, warn, error, fatal, silent <info>',
  ],
  [
    'a log format that does not exist',
    'log: { format: text }',
    '1:16 log.format: expected one of: auto, json, pretty',
  ],
  [
    'an access log in another word',
    'log: { access: all }',
    '1:16 log.access: expected true, false, "sample", or members such as { path: true }',
  ],
  [
    'a collector without its scheme',
    'tracing: { otlpUrl: "127.0.0.1:4318" }',
    '1:21 tracing.otlpUrl: expected a URL that starts with http:// or https://',
  ],
  [
    'a collector with another protocol',
    'tracing: { otlpUrl: "grpc://x" }',
    '1:21 tracing.otlpUrl: expected a URL that starts with http:// or https://',
  ],
  [
    'a sample ratio above 1',
    'tracing: { sampleRatio: 10 }',
    '1:25 tracing.sampleRatio: expected a share from 0 to 1, e.g. 0.2',
  ],
  [
    'origins without a value',
    'cors: { origins: null }',
    '1:18 cors.origins: is empty: leave the key out, or give it a value',
  ],
  [
    'an origin with a path',
    'cors: { origins: ["https://a/b"] }',
    '1:19 cors.origins[0]: an origin has no path: it ends after host and port',
  ],
  [
    'an origin without its scheme',
    'cors: { origins: ["app.example"] }',
    '1:19 cors.origins[0]: expected an origin, e.g. https://app.example.org <http://app.example>',
  ],
  [
    'credentials for every origin',
    'cors: { origins: ["*"], credentials: true }',
    '1:38 cors.credentials: requires origins by name: browsers refuse credentials for "*" (Fetch standard, CORS check)',
  ],
  [
    'a method in lower case',
    'cors: { methods: [get] }',
    '1:19 cors.methods[0]: expected one of: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS <GET>',
  ],
  [
    'a header name with a space',
    'cors: { headers: ["a b"] }',
    '1:19 cors.headers[0]: expected the name of a header, e.g. X-Request-Id',
  ],
  [
    'a rate limit of a service that does not exist',
    'rateLimits: [{ name: a, service: none, max: 1 }]',
    '1:34 rateLimits[0].service: expected the name of a service: plants, site',
  ],
  [
    'a rate limit without its number',
    'rateLimits: [{ name: a, service: site }]',
    '1:14 rateLimits[0].max: is required: expected a whole number from 1 to 1000000000',
  ],
  [
    'a rate limit with a capital name',
    'rateLimits: [{ name: "A B", service: site, max: 1 }]',
    '1:22 rateLimits[0].name: a name is 1 to 32 lower-case letters, digits and hyphens',
  ],
  [
    'a rate limit by something else',
    'rateLimits: [{ name: a, service: site, max: 1, by: ip }]',
    '1:52 rateLimits[0].by: expected one of: address, credential, key, or claim: and a name, e.g. claim:sub',
  ],
  [
    'a rate limit by key without API keys',
    'rateLimits: [{ name: a, service: site, max: 1, by: key }]',
    '1:52 rateLimits[0].by: requires access.apiKeys of the service',
  ],
  [
    'two rate limits of one name',
    'rateLimits: [{ name: a, service: site, max: 1 }, { name: a, service: site, max: 1 }]',
    '1:58 rateLimits[1].name: another limit has the same name',
  ],
  [
    'a rate limit with a path alone',
    'rateLimits: [{ name: a, service: site, max: 1, match: "/a" }]',
    '1:55 rateLimits[0].match: expected methods and a path: write "* /a"',
  ],
  [
    'rate limits that are no list',
    'rateLimits: { name: a }',
    '1:13 rateLimits: expected a list, found a section; begin each entry with "-"',
  ],
  [
    'a Redis without its scheme',
    'cache: { shared: { url: "127.0.0.1:6379" } }',
    '1:25 cache.shared.url: expected a URL that starts with redis:// or rediss://',
  ],
  [
    'a short key for Redis',
    'cache: { shared: { key: short } }',
    '1:25 cache.shared.key: expected at least 32 characters: openssl rand -hex 32',
  ],
  [
    'TLS settings for a Redis without TLS',
    'cache: { shared: { url: "redis://a", tls: { serverName: a } } }',
    '1:43 cache.shared.tls: only works with a cache.shared.url that starts with rediss://',
  ],
  [
    'a lease that is too short',
    'cache: { shared: { lease: 10ms } }',
    '1:27 cache.shared.lease: expected 100ms to 1m: a shorter lease ends during pauses of the process, a longer one delays writes',
  ],
  [
    'an instance that is forgotten too soon',
    'cache: { shared: { forgetAfter: 1s } }',
    '1:33 cache.shared.forgetAfter: must be at least three times cache.shared.lease, so that an instance that is cut off stops before it is removed',
  ],
  [
    'a handling of writes that does not exist',
    'cache: { shared: { writes: refuse } }',
    '1:28 cache.shared.writes: expected one of: go-on, refuse-while-cut-off',
  ],
  [
    'a prefix with a space',
    'cache: { shared: { prefix: "a b" } }',
    '1:28 cache.shared.prefix: expected 1 to 64 letters, digits, dots, hyphens and underscores',
  ],
  [
    'a content coding that does not exist',
    'cache: { compression: { encodings: [deflate] } }',
    '1:37 cache.compression.encodings[0]: expected one of: br, gzip, zstd',
  ],
  [
    'a response that is larger than the cache',
    'cache: { maxBytes: 1MiB }',
    '1:20 cache.maxBytes: must be at least cache.maxEntryBytes (4MiB if it is not set), because a larger response cannot be stored: raise it, or lower that',
  ],
  [
    'no concurrent fetches while warming',
    'cache: { warm: { concurrency: 0 } }',
    '1:31 cache.warm.concurrency: expected a whole number from 1 to 256',
  ],
  [
    'a rate without its unit',
    'cache: { verify: { rate: 1 } }',
    '1:26 cache.verify.rate: expected a rate of at most 100/s: 1/s, 10/m or 5/h; 0/s = none, found a number',
  ],
  [
    'more checks than a second has',
    'cache: { verify: { rate: 101/s } }',
    '1:26 cache.verify.rate: expected a rate of at most 100/s: 1/s, 10/m or 5/h; 0/s = none',
  ],
  [
    'a URL longer than the headers',
    'limits: { urlBytes: 32KiB }',
    '1:21 limits.urlBytes: must be at most limits.headerBytes, which includes the URL',
  ],
  [
    'buffers smaller than two bodies',
    'limits: { bufferedBytes: 1MiB }',
    '1:26 limits.bufferedBytes: must be at least twice limits.bodyBytes, because one client gets half of it and a body is read completely',
  ],
  [
    'no depth of JSON',
    'limits: { jsonDepth: 0 }',
    '1:22 limits.jsonDepth: expected a whole number from 1 to 1000',
  ],
  [
    'an interval that is too short',
    'overload: { interval: 10ms }',
    '1:23 overload.interval: must be 0s or at least 100ms, because a shorter interval measures too little',
  ],
  [
    'keys without a scheme',
    open('access: { jwt: { jwks: id.example, issuer: a, audience: b } }'),
    '1:104 services.a.access.jwt.jwks: expected a JWKS: JSON with a list "keys" (RFC 7517), an http(s) URL, or file:/path/to/file',
  ],
  [
    'a file of keys that does not exist',
    open('access: { jwt: { jwks: "file:/nowhere", issuer: a, audience: b } }'),
    '1:104 services.a.access.jwt.jwks: the secret file /nowhere cannot be read, it does not exist (ENOENT)',
  ],
  [
    'a symmetric algorithm',
    jwt('algorithms: [HS256]'),
    '1:156 services.a.access.jwt.algorithms[0]: expected one of: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519; symmetric algorithms are not accepted <RS256>',
  ],
  [
    'no algorithm',
    jwt('algorithms: [none]'),
    '1:156 services.a.access.jwt.algorithms[0]: expected one of: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519; symmetric algorithms are not accepted',
  ],
  [
    'a token in a header of HTTP itself',
    jwt('header: Host'),
    '1:151 services.a.access.jwt.header: has its own meaning in HTTP; use another header',
  ],
  [
    'a claim in a header of HTTP itself',
    jwt('forward: { sub: Cookie }'),
    '1:159 services.a.access.jwt.forward.sub: has its own meaning in HTTP; use another header',
  ],
  [
    'a requirement that does not exist',
    jwt('required: reads'),
    '1:153 services.a.access.jwt.required: expected one of: all, writes, never',
  ],
  ['a leeway that is too long', jwt('leeway: 1h'), '1:151 services.a.access.jwt.leeway: must be at most 10m'],
  [
    'a file of API keys that does not exist',
    open('access: { apiKeys: { file: /nowhere } }'),
    '1:108 services.a.access.apiKeys.file: the file /nowhere cannot be read, it does not exist (ENOENT)',
  ],
  [
    'a relative path of API keys',
    open('access: { apiKeys: { file: keys } }'),
    '1:108 services.a.access.apiKeys.file: expected an absolute path: /etc/trellis/x',
  ],
  [
    'an address by name',
    open('access: { allow: [office] }'),
    '1:99 services.a.access.allow[0]: expected an IP address or a CIDR block, e.g. 10.0.0.0/8',
  ],
  [
    'an address that is no list',
    open('access: { allow: 10.0.0.0/8 }'),
    '1:98 services.a.access.allow: expected a list, found a text; put it in brackets',
  ],
  [
    'a static identity that is missing',
    site('discovery: { source: static }'),
    '1:34 services.a.discovery.identity: is required with source: static',
  ],
  [
    'an impossible time zone',
    site('discovery: { source: static, identity: { gmtOffset: 20 } }'),
    '1:86 services.a.discovery.identity.gmtOffset: expected hours from -15 to 15',
  ],
  [
    'a batch without items',
    site('batch: { maxItems: 0 }'),
    '1:53 services.a.batch.maxItems: expected a whole number from 1 to 1000',
  ],
  [
    'a way to split that does not exist',
    site('batch: { split: items }'),
    '1:50 services.a.batch.split: expected one of: item, chunk, whole, auto <item>',
  ],
  [
    'a handling of routes that does not exist',
    site('unlistedRoutes: allow'),
    '1:50 services.a.unlistedRoutes: expected one of: learn, pass, refuse',
  ],
  [
    'a naming that does not exist',
    site('names: neutral'),
    '1:41 services.a.names: expected one of: wordpress, same <wordpress>',
  ],
  [
    'a parameter name with a space',
    site('parameters: { tracking: ["a b"] }'),
    '1:59 services.a.parameters.tracking[0]: expected a parameter name; "*" is allowed at the end',
  ],
  [
    'a handling of parameters that does not exist',
    site('parameters: { unknown: drop }'),
    '1:57 services.a.parameters.unknown: expected one of: strip, forward',
  ],
  [
    'a list parameter with a space',
    'services: { a: { contract: plants, limitParameter: "a b" } }',
    '1:52 services.a.limitParameter: expected a parameter name',
  ],
  [
    'a body larger than the buffers',
    site('limits: { bodyBytes: 64MiB }'),
    '1:55 services.a.limits.bodyBytes: must be at most half of limits.bufferedBytes, because one client gets half of it and a body is read completely',
  ],
  [
    'a file that is a list',
    '- a',
    '1:1 : expected a section with keys and values, found a list; its keys are: listen, limits, cors, overload, rateLimits, rateLimitKeys, reload, admin, publicUrl, workers, trustedProxies, log, tracing, metrics, cache, drain, services',
  ],
  [
    'a file that is a text',
    'hello',
    '1:1 : expected a section with keys and values, found a text; its keys are: listen, limits, cors, overload, rateLimits, rateLimitKeys, reload, admin, publicUrl, workers, trustedProxies, log, tracing, metrics, cache, drain, services',
  ],
  [
    'a file that is a number',
    '5',
    '1:1 : expected a section with keys and values, found a number; its keys are: listen, limits, cors, overload, rateLimits, rateLimitKeys, reload, admin, publicUrl, workers, trustedProxies, log, tracing, metrics, cache, drain, services',
  ],
  [
    'two documents',
    'workers: 1\n---\nworkers: 2',
    '2:1 : expected one YAML document, but "---" begins another one',
  ],
  [
    'a key that occurs twice',
    'workers: 1\nworkers: 2',
    '2:1 : not YAML: this key occurs twice in its section',
  ],
  [
    'a misspelt key in a file of another system',
    '\ufefflisten:\r\n  prot: 1\r\n',
    '2:3 listen.prot: unknown key <port>',
  ],
  [
    'one port for both sides',
    'admin: { port: 8080 }',
    '1:16 admin.port: must differ from listen.port (8080): the admin side must not be public',
  ],
  [
    'a host that is a star',
    'admin: { host: "*" }',
    '1:16 admin.host: expected a host name or an IP address, without a port',
  ],
  [
    'a file in TOML',
    'workers = 1\nlog.level = "info"',
    '1:1 : expected a section with keys and values, found a text; its keys are: listen, limits, cors, overload, rateLimits, rateLimitKeys, reload, admin, publicUrl, workers, trustedProxies, log, tracing, metrics, cache, drain, services',
  ],
  [
    'an empty service name',
    'tracing: { serviceName: "" }',
    '1:25 tracing.serviceName: expected at least 1 character',
  ],
  ['pushes without a pause', 'metrics: { interval: 100ms }', '1:22 metrics.interval: expected at least 1s'],
]
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references as the file spells them */

/** Of a line of a terminal. */
const columns = 100
const maxLines = 3

describe('one mistake in a configuration is one fault with position, key and remedy', () => {
  test.each(rows)('%s', async (_mistake, text, fault) => {
    const result = await checkConfig(text, {})
    const faults = result.kind === 'ok' ? [] : result.faults
    const shown = faults.map(({ line, column, path, message, suggestion }) => {
      const hint = suggestion === undefined ? '' : ` <${suggestion}>`
      return `${line}:${column} ${path}: ${message}${hint}`
    })
    expect(shown).toEqual([fault])
    expect(fault.length).toBeLessThanOrEqual(columns * maxLines)
  })

  test('the table covers every section and at least 81 mistakes', () => {
    expect(new Set(rows.map(([, text]) => text)).size).toBeGreaterThanOrEqual(81)
    const keys = rows.map(([, , fault]) => fault.replace(/^\d+:\d+ /, '').split(/[.:[]/)[0])
    for (const section of [
      ...['listen', 'admin', 'publicUrl', 'workers', 'trustedProxies', 'limits', 'cors', 'overload'],
      ...['rateLimits', 'reload', 'log', 'tracing', 'metrics', 'cache', 'drain', 'services'],
    ])
      expect(keys).toContain(section)
  })
})
