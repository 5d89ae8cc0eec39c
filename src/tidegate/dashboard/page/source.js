// Where the page's data comes from: a server that goes on sending, or the data in a report.

const PAGE = 200;
const AGAIN_MS = 2000;

class ReportSource {
  constructor(data) {
    this.data = data;
    this.still = true;
  }

  async queries() {
    return this.data.queries;
  }

  open(id, take) {
    take.batches(this.data.batches[id] ?? []);
    take.status(this.data.status[id]);
    return () => {};
  }
}

class LiveSource {
  constructor() {
    this.still = false;
  }

  async queries() {
    return (await fetch("api/queries")).json();
  }

  // Goes on by itself after a failure; ends with the query, or when the page closes it.
  open(id, take) {
    let events = null;
    let after = -1;
    let over = false;
    const query = encodeURIComponent(id);
    const got = async (path) => {
      const answer = await fetch(path);
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      return answer.json();
    };
    const again = () => {
      if (over) return;
      take.lost(true);
      setTimeout(begin, AGAIN_MS);
    };
    const begin = async () => {
      try {
        take.status(await got(`api/status?query=${query}`));
        for (let more = true; more && !over; ) {
          const part = await got(`api/batches?query=${query}&after=${after}&most=${PAGE}`);
          take.batches(part.batches);
          after = part.batches.at(-1)?.batch ?? after;
          more = part.more && part.batches.length > 0;
        }
      } catch {
        return again();
      }
      if (over) return;
      take.lost(false);
      events = new EventSource(`api/events?query=${query}&after=${after}`);
      events.addEventListener("batch", (event) => {
        const record = JSON.parse(event.data);
        after = record.batch;
        take.batches([record]);
      });
      events.addEventListener("status", (event) => take.status(JSON.parse(event.data)));
      events.addEventListener("end", () => {
        over = true;
        events.close();
      });
      events.addEventListener("error", () => {
        events.close();
        again();
      });
    };
    begin();
    return () => {
      over = true;
      events?.close();
    };
  }

  async control(body, token) {
    try {
      const answer = await fetch("api/control", {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      });
      const got = await answer.json();
      return { ok: answer.ok, text: answer.ok ? (got.done?.state ? `the query is ${got.done.state}` : "taken, from the next batch on") : (got.error ?? `refused, ${answer.status}`) };
    } catch (error) {
      return { ok: false, text: `the server did not answer: ${error.message}` };
    }
  }
}

export function openSource() {
  const data = document.getElementById("data");
  return data ? new ReportSource(JSON.parse(data.textContent)) : new LiveSource();
}
