# SPDX-License-Identifier: Apache-2.0
"""Settings of queues in the words of ojs-queue-config."""

from gateways import OnGateway


class QueueConfig(OnGateway):
    def create(self, body, expect=201):
        return self.call("POST", "queues", {"name": self.queue} | body, expect=expect)

    def pressure(self):
        policy = self.call("GET", "queues/" + self.queue, expect=200).json["queue"]["backpressure"]
        return policy["max_depth"], policy["max_size_bytes"], policy["strategy"]

    def test_a_new_queue_takes_its_settings_inside_config_or_beside_its_name(self):
        wanted = {"max_size": 2, "max_size_bytes": 5000, "overflow_policy": "drop_oldest", "concurrency": 1}
        for body in ({"config": wanted}, wanted):
            self.create(body)
            self.assertEqual(self.pressure(), (2, 5000, "drop_oldest"))
            view = self.call("GET", "admin/queues/" + self.queue, expect=200).json["configuration"]
            self.assertEqual(view["concurrency"], 1)
            self.call("DELETE", "queues/" + self.queue, expect=200)
        self.create({"config": wanted})
        first, *_ = [self.put_job() for _ in range(3)]
        self.assertEqual(self.get(first)["state"], "discarded")
        self.assertEqual(len(self.fetch(2)), 1)

    def test_a_change_leaves_the_rest_as_it_was(self):
        self.create({"config": {"max_size": 5, "overflow_policy": "block"}})
        changed = self.call("PUT", f"queues/{self.queue}/config", {"max_size": 7}, expect=200).json
        self.assertEqual(changed["configuration"]["backpressure"]["max_depth"], 7)
        self.assertEqual(self.pressure(), (7, 0, "block"))
        self.call("PUT", f"queues/{self.queue}/config", {"config": {"concurrency": 3}}, expect=200)
        self.assertEqual(self.pressure(), (7, 0, "block"))
        rate = {"limit": 100, "period": "PT1M"}
        self.call("PUT", f"queues/{self.queue}/config", {"rate_limit": rate}, expect=200)
        throttle = {"limit": 2, "period": "PT1S"}
        config = self.call("PUT", f"queues/{self.queue}/config", {"rate_limit": {"throttle": throttle}}, expect=200).json["config"]
        self.assertEqual((config["concurrency"], config["rate_limit"]), (3, rate | {"throttle": throttle}))
        self.call("PUT", f"queues/{self.queue}/config", {"concurrency": 4}, expect=200)
        config = self.call("GET", "queues/" + self.queue, expect=200).json["queue"]["config"]
        self.assertEqual((config["concurrency"], config["rate_limit"]), (4, rate | {"throttle": throttle}))
        for change, left in (({"rate_limit": config["rate_limit"]}, 4), ({"rate_limit": None}, 4), ({"concurrency": None}, None)):
            config = self.call("PUT", f"queues/{self.queue}/config", change, expect=200).json["config"]
            self.assertEqual((config.get("concurrency"), config.get("rate_limit")), (left, change.get("rate_limit")))
        self.assertFalse(self.call("GET", f"rate-limits/queue:{self.queue}", expect=200).json["override"])

    def test_it_tells_its_numbers_beside_its_settings(self):
        self.create({"config": {"max_size_bytes": 5000, "overflow_policy": "reject"}})
        self.put_job()
        shown = self.call("GET", "queues/" + self.queue, expect=200).json["queue"]
        self.assertEqual((shown["config"]["max_size_bytes"], shown["config"]["overflow_policy"]), (5000, "reject"))
        self.assertEqual((shown["stats"]["depth"], shown["stats"]["available"]), (1, 1))

    def test_what_is_no_setting_is_refused(self):
        for body, field in (({"config": 7}, "config"), ({"config": {"overflow_policy": "spill"}}, "backpressure.strategy"),
                            ({"max_size": -1}, "max_size"), ({"config": {"max_size": "x"}}, "config.max_size"),
                            ({"max_size": 1, "backpressure": {"max_depth": 2}}, "backpressure")):
            self.assertEqual(self.create(body, 400).error["details"]["field"], field, body)

    def test_what_no_queue_here_has_is_told_from_what_is_wrong(self):
        for name, value in (("dead_letter_queue", "dlq"), ("default_timeout", 30), ("allowed_job_types", ["a.*"])):
            for body in ({name: value}, {"config": {name: value}}):
                error = self.create(body, 422).error
                self.assertEqual(error["code"], "unsupported")
                self.assertIn(name, error["message"])

    def test_it_is_read_as_it_was_sent(self):
        wanted = {"max_size": 10, "overflow_policy": "drop_oldest", "concurrency": 20, "retention": {"completed": "P1D"}}
        made = self.create({"config": wanted}).json["queue"]["config"]
        read = self.call("GET", "queues/" + self.queue, expect=200).json["queue"]["config"]
        self.assertEqual({name: read[name] for name in wanted}, wanted)
        self.assertEqual(made, read)
        self.call("PUT", f"queues/{self.queue}/config", {"config": read}, expect=200)
        again = self.call("GET", "queues/" + self.queue, expect=200).json["queue"]["config"]
        self.assertEqual({name: again[name] for name in wanted}, wanted)
