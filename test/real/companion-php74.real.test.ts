import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { companionFile } from './wordpress/copy-companion.ts'

const interpreter = 'php'
const script = join(dirname(fileURLToPath(import.meta.url)), 'companion/after-php74.php')

/** The constructs in a PHP source that PHP 7.4 does not know, found with PHP's own tokenizer. */
const constructsOf = (source: string): readonly string[] => {
  const { stdout, stderr } = spawnSync(interpreter, [script], {
    input: JSON.stringify([source]),
    encoding: 'utf8',
  })
  if (stdout === '') throw new Error(stderr)
  return (JSON.parse(stdout) as readonly (readonly string[])[])[0] ?? []
}

/** Constructs of PHP 8.0 to 8.5, each with a source that has it. */
const newer: readonly (readonly [construct: string, source: string])[] = [
  ['match', '$a = match ( $b ) { 1 => 2 };'],
  ['?->', '$a?->b();'],
  ['named argument', 'f( 1, second: 2 );'],
  ['union type', 'function f( int|string $a ) {}'],
  ['union type', 'function f(): int|null { return 1; }'],
  ['union type', 'class A { private int|array $a; }'],
  ['intersection type', 'function f( A&B $a ) {}'],
  ['static return', 'class A { function f(): static { return $this; } }'],
  ['static return', 'class A { function f(): ?static { return $this; } }'],
  ['mixed', 'function f( mixed $a ) {}'],
  ['mixed', 'function f(): mixed {}'],
  ['never', 'function f(): never { exit; }'],
  ['trailing comma in parameters', 'function f( $a, $b, ) {}'],
  ['trailing comma in parameters', '$f = function () use ( $a, ) {};'],
  ['throw expression', '$a = $b ?? throw new Exception();'],
  ['throw expression', '$f = fn() => throw new Exception();'],
  ['promoted property', 'class A { function __construct( private $a ) {} }'],
  ['catch without variable', 'try { f(); } catch ( Exception ) {}'],
  ['$object::class', '$a = $b::class;'],
  ['callable(...)', '$f = strlen(...);'],
  ['attribute', '#[A] function f() {}'],
  ['enum', 'enum A { case B; }'],
  ['readonly', 'class A { public readonly int $a; }'],
  ['new in initializer', 'function f( $a = new A() ) {}'],
  ['final constant', 'class A { final const B = 1; }'],
  ['0o', '$a = 0o17;'],
  ['str_contains', 'str_contains( $a, $b );'],
  ['str_starts_with', '\\str_starts_with( $a, $b );'],
  ['array_is_list', 'array_is_list( $a );'],
  ['json_validate', 'json_validate( $a );'],
  ['WeakMap', '$a = new WeakMap();'],
]

/** What PHP 7.4 knows and looks like one of them. */
const older = `
  function f( ?int $a, array ...$b ): ?array { return $a ? A : B; }
  class A { const FLAGS = CURLPROTO_HTTP | CURLPROTO_HTTPS; private ?int $n = null; public static function g(): self { return new static(); } }
  switch ( $a ) { case B: throw new Exception(); default: break; }
  try { f( 1, [ 2, ], ); } catch ( A | B $error ) { throw $error; }
  $a ??= A::class; $g = fn( $x ) => $x & A; $o->str_contains( 1 ); $b = array( 'a' ? A : B, 017 );
  function str_contains_one( &$a ) { return A & B; }`

describeWith('php', 'the WordPress companion is PHP 7.4, as far as PHP’s tokenizer shows', () => {
  test('it has no construct, function or class of a later version', async () => {
    expect(constructsOf(await readFile(companionFile, 'utf8'))).toEqual([])
  })

  test.each(newer)('%s is found in %s', (construct, source) => {
    expect(constructsOf(`<?php ${source}`)).toContain(construct)
  })

  test('the companion is valid PHP 7.4', () => {
    expect(constructsOf(`<?php ${older}`)).toEqual([])
  })
})
