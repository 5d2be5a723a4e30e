// Drives a headless Chromium by lines of JSON on standard input; answers each with a line. For tests/servers_admin/page.rs.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({
  executablePath: process.env.BINLOGD_CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
// What the browser complains about: errors of the script, and what the content security policy forbids.
const complaints = [];
const pages = new Map();

async function page(request) {
  const known = pages.get(request.page ?? '');
  if (known) return known;
  const context = await browser.newContext({
    colorScheme: request.dark ? 'dark' : 'light',
    viewport: request.phone ? { width: 360, height: 740 } : { width: 1280, height: 900 },
    deviceScaleFactor: request.phone ? 2 : 1,
    javaScriptEnabled: !request.noscript,
    ignoreHTTPSErrors: true,
    httpCredentials: request.user ? { username: request.user, password: request.password } : undefined,
  });
  // The machine may be busy: what is late is judged by the test.
  context.setDefaultTimeout(60000);
  const made = await context.newPage();
  made.on('console', message => { if (message.type() === 'error') complaints.push(message.text()); });
  made.on('pageerror', error => complaints.push(String(error)));
  pages.set(request.page ?? '', made);
  return made;
}

const verbs = {
  async open(request) {
    const answer = await (await page(request)).goto(request.url, { waitUntil: 'domcontentloaded' });
    return { status: answer.status() };
  },
  // When the element's text first held the words, in milliseconds since 1970.
  async wait(request) {
    const handle = await (await page(request)).waitForFunction(
      ([selector, words]) => document.querySelector(selector)?.textContent.includes(words) ? Date.now() : 0,
      [request.selector, request.words], { polling: 50, timeout: request.within_ms });
    return { at: await handle.jsonValue() };
  },
  async text(request) {
    return { text: await (await page(request)).locator(request.selector).innerText({ timeout: 60000 }) };
  },
  async evaluate(request) {
    return { value: await (await page(request)).evaluate(request.script) };
  },
  async press(request) {
    await (await page(request)).keyboard.press(request.key);
    return {};
  },
  async click(request) {
    await (await page(request)).click(request.selector, { timeout: 60000 });
    return {};
  },
  async shot(request) {
    await (await page(request)).screenshot({ path: request.file, fullPage: true });
    return {};
  },
  // What axe finds that is serious or worse.
  async axe(request) {
    const shown = await page(request);
    await shown.evaluate(axe);
    const found = await shown.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
    const bad = found.violations.filter(one => ['serious', 'critical'].includes(one.impact));
    return {
      violations: bad.map(one => `${one.id}: ${one.help}: ${one.nodes.map(node => `${node.html} ${node.failureSummary}`).join(' | ')}`),
      others: found.violations.map(one => `${one.id} (${one.impact}): ${one.nodes[0].html}`),
      passes: found.passes?.length ?? 0,
    };
  },
  async close(request) {
    const known = pages.get(request.page ?? '');
    pages.delete(request.page ?? '');
    if (known) await known.context().close();
    return {};
  },
  async complaints() { return { complaints: complaints.splice(0) }; },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try { answer = await verbs[request.do](request); } catch (error) { answer = { error: String(error) }; }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
await browser.close();
